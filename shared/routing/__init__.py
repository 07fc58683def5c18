"""What a question asks for besides its words: when, of which kind, how far and by which way to look."""

# Questions are shorter; what comes after is not read.
MAX_LENGTH = 10_000
