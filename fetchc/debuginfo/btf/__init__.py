"""BTF, the type information that kernels carry: a compact table of C types and functions."""
