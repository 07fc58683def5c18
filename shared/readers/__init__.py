"""Files to Markdown, a reader for each format. Strangers made what comes here: sandbox.py runs them."""
