"""Grounding: whether each sentence of an answer is supported by the passages it was written from. No
model is called. Imports text.
"""
