"""Gates by rule: what a candidate must pass before any model looks at it."""
