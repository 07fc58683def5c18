"""Conversations over documents: a question is completed from earlier messages, then answered.

nouns, presets: the request of a turn, and its events. sessions: stored conversations. follow_ups, and a
grammar for each language: whether a question depends on an earlier one. memory, rewrite: the past that a
question gets. thinking, deep: one question as several. prompt, writing: the model's request and its answer.
work, turn: all of it, in order.
"""
