"""Flow control of calls: stated and observed rate limits, calls in flight, and waits."""
