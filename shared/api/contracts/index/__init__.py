"""The index contract, compatible with KAITO RAGEngine, and OpenAI chat completions. Imports
api.contracts.
"""
