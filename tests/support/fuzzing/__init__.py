"""Damage to real files, questions about them, and what may come out of these."""
