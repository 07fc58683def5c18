"""Export, import and erasure of an org's data, over the database's own URL."""
