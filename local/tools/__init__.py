"""Build tools of the project: what writes generated files, and packages. No other code imports them."""
