"""Guards of the changes to libraries: each fails for a version with other internals."""
