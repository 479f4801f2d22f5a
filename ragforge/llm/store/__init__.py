"""The call store: every reply is kept, by what was asked, before anybody uses it.

One SQLite file (WAL) per dataset, shared by concurrent processes: cache, resume and ledger in one.
"""
