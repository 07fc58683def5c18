"""Retrieval: match, highlight, context text; query/ plans a search."""
