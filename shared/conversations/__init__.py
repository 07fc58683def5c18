"""Conversations over documents: what is asked is understood from what was said before, looked for, and
answered.

nouns, presets: what a turn asks for, and what happens. sessions: what is kept. memory, rewrite: what of the
past a question gets. thinking, deep: one question as several. prompt, writing: what the model is told, and
says. work, turn: all of it, in order.
"""
