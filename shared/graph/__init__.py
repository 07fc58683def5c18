"""Entities and relations: extraction from texts and queries, and the results of graph searches. Imports
models and the packages above it.
"""
