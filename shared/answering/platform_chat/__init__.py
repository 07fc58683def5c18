"""Platform chat: a question is completed from earlier messages of its session, then answered. Imports
generation and retrieval; turn.py is the order of the steps.
"""
