"""The deployed functions: one stateless handler a file, served under its own routes."""
