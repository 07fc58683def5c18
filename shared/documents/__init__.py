"""Collections, documents, uploads, indexes, webhooks; snapshots/ exports and imports indexes. Imports
ingestion and the packages above it.
"""
