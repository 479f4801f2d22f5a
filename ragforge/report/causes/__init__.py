"""Why a run does badly on a query, by rules."""
