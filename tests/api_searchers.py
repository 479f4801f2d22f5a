"""Retrievers of a user, in a module of their own."""


class Searcher:
    """Finds the same whatever it is asked."""

    def retrieve(self, query, k):
        """Return two ids."""
        return ["a", "b"][:k]

    @staticmethod
    def find(query, k):
        """Return two ids."""
        return ["a", "b"][:k]
