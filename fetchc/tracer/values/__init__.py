"""Fields of a record become values."""
