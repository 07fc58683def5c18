"""Models: embeddings, rerankers, chat gateway, moderation, transcription. Imports text, clients,
observability and access.
"""
