"""Report: what a dataset, its judgments and its runs say, as text, Markdown or one HTML page."""
