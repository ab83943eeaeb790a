"""An index of names (types, variables, functions), made in one pass and kept."""
