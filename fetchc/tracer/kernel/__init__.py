"""The kernel's side: tracefs, definitions in it, its records out of it."""
