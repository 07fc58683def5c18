"""Confidence, generators, extractive answers, refusals; grounding/ checks answers. Imports retrieval and
the packages above it.
"""
