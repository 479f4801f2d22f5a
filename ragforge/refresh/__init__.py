"""Following a corpus that changed: the next version of a dataset, night by night."""
