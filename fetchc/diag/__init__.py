"""Diagnostics as data: codes, labels, notes; rendering is apart from raising."""
