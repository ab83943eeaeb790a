"""The kernel's own fetch program as a tree: what one fetch-arg loads and how it stores it."""
