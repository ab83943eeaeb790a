"""The format ``bpftrace``: programs for bpftrace, from 0.17 on."""
