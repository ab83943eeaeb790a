"""The eBPF engine: the same plans, recorded by programs of our own."""
