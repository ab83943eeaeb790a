"""Methods by name, and where the code of each is."""
