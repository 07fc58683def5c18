"""What texts name and how they say it is related: read without a model, and asked after."""
