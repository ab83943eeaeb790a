"""Where a program's debug information is when it is not in the program: a module a place."""
