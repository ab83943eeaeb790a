"""``fetchc browse``: a program's functions, variables and members on a terminal, and their values.

A client of the library: it knows no reader of debug information and no rule of a kernel. Values are
those of ``fetchc trace``, which runs in a process of its own. The only code that imports textual.
"""
