"""From questions to the documents that answer them, one or a million."""
