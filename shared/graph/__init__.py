"""Entities and relations: extraction from texts and queries, and the results of graph searches."""
