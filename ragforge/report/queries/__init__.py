"""Every query of a set with all that is known of it."""
