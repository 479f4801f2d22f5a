"""Gates: rules, verdicts, and what CI is told."""
