"""Chunking: boundaries of a text by its structure, type and language, and packing into chunks. Imports
text.
"""
