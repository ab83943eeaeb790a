"""CPU time and memory of fetchc beside its peers: ``python -m tests.benchmark``."""
