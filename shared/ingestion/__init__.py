"""Ingestion: parsers/, chunking/, the synchronous path, the job queue and its workers. Imports generation
and the packages above it, never services or pipeline.
"""
