"""Source lines and inlined calls of addresses."""
