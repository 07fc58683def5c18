"""The search contract, compatible with Lightfast: /v1/search, similar, contents, answer. Imports
api.contracts.
"""
