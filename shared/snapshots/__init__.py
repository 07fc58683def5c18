"""Indexes kept in a store elsewhere, and brought back from there."""
