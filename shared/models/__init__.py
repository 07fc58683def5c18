"""Models: embeddings, rerankers, chat gateway, moderation, transcription."""
