"""Conversations: answered by a model alone, or over an index's documents."""
