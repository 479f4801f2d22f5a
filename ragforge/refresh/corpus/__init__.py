"""What changed in the documents and chunks between two versions."""
