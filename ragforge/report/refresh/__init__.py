"""What a refresh did, in words: for the terminal, the changelog and the tools of schedulers."""
