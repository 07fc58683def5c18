"""Follow-up questions: detection by a grammar of each language (TOML), rewriting by a model. Imports text."""
