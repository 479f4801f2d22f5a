"""What becomes of each query: kept, rechecked, quarantined or retired."""
