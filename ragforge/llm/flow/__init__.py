"""How much is sent at once: what the endpoint told, what it showed, and how long to wait."""
