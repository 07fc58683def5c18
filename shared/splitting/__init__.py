"""Where a text may be cut into chunks, and where rather not: by its structure, its type, its language."""
