"""Types, from their entries."""
