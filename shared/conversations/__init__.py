"""Conversations over documents: what is asked is understood from what was said before, looked for, and
answered.

asked.py, presets.py: what a turn asks for. memory.py, rewrite.py: what of the past it gets. deep.py: one
question as several. prompt.py: what the model is told. turn.py: all of it, in order.
"""
