"""Collections, documents, uploads, indexes, webhooks; snapshots/ exports and imports indexes."""
