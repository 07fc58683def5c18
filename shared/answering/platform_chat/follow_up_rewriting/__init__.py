"""Follow-up questions: detection by a grammar of each language, and rewriting by a model. Imports text."""
