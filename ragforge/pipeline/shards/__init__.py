"""Work cut into shards that any job array runs: plain files, leases, one budget, one merged file.

`planning` cuts, `running` works shards off, `merging` puts them together, `progress` says how far
it is.
"""
