"""Types with all type arguments: their layout, and what they are for an expression."""
