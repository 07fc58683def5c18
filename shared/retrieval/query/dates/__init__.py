"""Date ranges in English questions. Imports text and retrieval.query."""
