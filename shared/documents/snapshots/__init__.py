"""Snapshots: export of an index to an object store, and import from it. Imports ingestion and clients."""
