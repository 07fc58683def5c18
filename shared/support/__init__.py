"""Whether each sentence of an answer stands in the passages that it was written from; no model is asked."""
