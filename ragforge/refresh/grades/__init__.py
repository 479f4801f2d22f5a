"""Which grades of relevance still hold, and which were given by people."""
