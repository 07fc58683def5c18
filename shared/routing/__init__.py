"""What a question asks for besides its words: when, of which kind, how far and by which way to look."""
