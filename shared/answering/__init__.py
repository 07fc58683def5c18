"""Answers of each kind: routed search, knowledge query, cited answers, chat completions, platform chat."""
