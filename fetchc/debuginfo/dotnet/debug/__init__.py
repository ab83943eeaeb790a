"""Names of locals and lines: of portable PDBs, and where they are in the code."""
