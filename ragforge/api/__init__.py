"""The Python door: the jobs of the command line as functions, on frozen results.

`import ragforge as rf` offers what is here under short names, see `ragforge.__all__`; nothing of it
is imported before it is used. Plain calls work outside of an event loop and inside of one that runs
(a notebook); `rf.aio` and a set's `.aio` have the same calls to be awaited.
"""
