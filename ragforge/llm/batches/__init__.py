"""Batch APIs of providers: requests go out in files, replies come back in files, at half the price.

`records` keeps what was sent where, `remote` talks to the provider, `session` brings requests into
batches and replies into the call store.
"""
