"""The only place that opens data files: what comes out is checked, what goes in is whole."""
