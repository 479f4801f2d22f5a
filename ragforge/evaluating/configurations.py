"""What a sweep tries, and how much of a ranking it takes."""

from ragforge.deferred import dataclass
from ragforge.measures.measure_names import Measure


@dataclass(frozen=True, slots=True, order=True)
class Configuration:
    """How documents are cut and searched.

    Args:
        splitter: Its spec.
        size: Characters of a chunk; None where the splitter takes no size.
        overlap: Characters that two neighbours share.
        retriever: Its spec.
    """

    splitter: str
    size: int | None
    overlap: int
    retriever: str

    @property
    def name(self) -> str:
        """In words: `recursive 500+100, bm25`."""
        return f"{self.cut_name}, {self.retriever}"

    @property
    def cut_name(self) -> str:
        """The chunking in words: `recursive 500+100`."""
        if self.size is None:
            return self.splitter
        overlap = f"+{self.overlap}" if self.overlap else ""
        return f"{self.splitter} {self.size:,}{overlap}"


@dataclass(frozen=True, slots=True)
class Top:
    """How much is taken of a ranking: k texts, or what fits into a budget of tokens.

    Args:
        cutoff, tokens: One of them.
    """

    cutoff: int | None = None
    tokens: int | None = None

    def measure(self, name: str) -> Measure:
        """Return a measure of it."""
        return Measure(name, self.cutoff, tokens=self.tokens)
