"""Whether documents that changed still answer a query as it is expected."""
