"""The live side: definitions go into the kernel, records come out and become values."""
