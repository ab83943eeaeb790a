"""ELF files: headers, sections, symbols, notes."""
