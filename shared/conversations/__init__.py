"""Conversations over documents: a question is completed from what was said before, then answered.

nouns, presets: the request of a turn, and its events. sessions: stored conversations. follow_ups, and a
grammar for each language: whether a question depends on an earlier one. memory, rewrite: what of the past a
question gets. thinking, deep: one question as several. prompt, writing: the model's request and its answer.
work, turn: all of it, in order.
"""
