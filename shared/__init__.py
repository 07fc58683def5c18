"""What the functions share: the six steps, the nouns they hand on, the dialects. Start with pipeline.py."""
