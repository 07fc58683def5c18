"""Confidence, generators, extractive answers, refusals; grounding/ checks answers."""
