"""The five APIs as ways to say the same few things: wire names, envelopes, limits, status codes."""
