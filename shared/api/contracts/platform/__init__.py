"""The platform contract, compatible with Mnemosyne: collections, documents, chat, webhooks. Imports
api.contracts.
"""
