"""Why a run does badly on a query: a catalogue of causes, and how each is recognised."""
