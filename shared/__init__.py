"""Code that all functions share. Start with pipeline.py; each package imports only packages that stand
before it in pyproject.toml, [tool.importlinter].
"""

# The project's name, as other services see it.
PRODUCT = "citerow"
