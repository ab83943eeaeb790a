"""An index of types by name, made in one pass and kept."""
