"""Entries of debug information: units, abbreviations, forms, and the ways between them."""
