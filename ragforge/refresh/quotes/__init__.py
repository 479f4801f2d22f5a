"""Where the quotes that prove an answer stand now."""
