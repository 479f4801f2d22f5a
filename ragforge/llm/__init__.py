"""Everything that talks to a model: one protocol, and wrappers that hold to it too."""
