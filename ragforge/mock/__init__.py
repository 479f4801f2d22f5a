"""A scriptable OpenAI-compatible endpoint on loopback: good replies, faults, limits, a ledger."""

from ragforge.mock.script import Script
from ragforge.mock.serving import Running, serving

__all__ = ["Running", "Script", "serving"]
