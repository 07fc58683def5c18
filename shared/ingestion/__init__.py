"""Ingestion: parsers/, chunking/, the synchronous path, the job queue and its workers."""
