"""Query planning: router, date ranges, document kinds, expansion, rewriting by a model."""

# Questions are shorter; text after that is not read.
MAX_LENGTH = 10_000
