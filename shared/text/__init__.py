"""Functions on text alone: normalization, sentences, stems, token counts, citation marks."""
