"""The live side: definitions go into the kernel, records come out, values are made of them."""
