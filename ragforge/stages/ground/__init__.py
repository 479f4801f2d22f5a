"""Grounding: whether answers say only what their context says, without a reference to compare."""
