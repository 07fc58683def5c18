"""Extractive answers: candidates -> scores -> choice -> answer, with the weights of all steps."""
