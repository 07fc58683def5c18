"""Answers of which every sentence can be traced to the passages that hold it."""
