"""What an assembly says of itself (ECMA-335): tables, signatures, references to others."""
