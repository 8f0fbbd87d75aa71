"""How results are shown: readings, charts and their renderers, figures, sentences, pages. Reads rows only."""
