"""What documents name, and what they say of it: found without a model, asked in one call."""
