"""Documents become normalised text, and text becomes chunks whose ids depend on content alone."""
