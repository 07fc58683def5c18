"""Code that all functions share. Start with pipeline.py; each package imports only packages that stand
before it in pyproject.toml, [tool.importlinter].
"""
