"""Cited answers: each sentence is traced to the passages that support it. Imports generation and
retrieval.
"""
