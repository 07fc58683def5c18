"""Retrieval: match, highlight, context text; query/ plans a search. Imports graph and the packages above
it.
"""
