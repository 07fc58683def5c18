"""Answers of each kind: routed search, knowledge query, cited answers, chat completions, platform chat.
Imports pipeline and the packages above it, never api.
"""
