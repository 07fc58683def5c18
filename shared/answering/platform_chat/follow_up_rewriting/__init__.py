"""Follow-up questions: detection by a grammar of each language (TOML), and rewriting by a model. Imports text."""
