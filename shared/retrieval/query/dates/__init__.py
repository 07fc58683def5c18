"""Date ranges in questions, in English, German, French and Spanish. Imports text and retrieval.query."""
