"""Chat completions: OpenAI requests answered by a model alone, or grounded in an index. Imports
generation and retrieval.
"""
