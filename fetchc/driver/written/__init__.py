"""Definitions that somebody wrote: read and judged as the kernel does it."""
