"""Under which ids the texts that people were shown are found now."""

from collections.abc import Iterable

from ragforge.files.set.dataset import Dataset
from ragforge.records import label_text_sha256


class TextPlaces:
    """Under which ids the texts of labelled and drawn pairs are found now.

    Args:
        dataset: Has the chunks, and knows which of them moved.
        named: Ids of chunks that are asked for.
    """

    def __init__(self, dataset: Dataset, named: Iterable[str]) -> None:
        named = {*named}
        self._dataset = dataset
        self._elsewhere: dict[str, list[str]] = {}
        moved = dataset.past.moved_chunks() if named else {}
        self._moved = {before: moved[before] for before in named & moved.keys()}
        self._has_texts = dataset.chunks_path.exists()
        self._digests: dict[str, str] = {}
        if self._has_texts and named:
            wanted = named.union(*self._moved.values())
            with dataset.chunk_texts(wanted) as texts:
                there = (name for name in wanted if name in texts)
                self._digests = {name: label_text_sha256(texts[name]) for name in there}

    def of(self, chunk_ids: Iterable[str], text_sha256: str) -> tuple[str, ...]:
        """Return the ids of now of the chunks that had a text; () where none has it any more.

        Args:
            chunk_ids: As they were when the text was shown.
            text_sha256: Of the text.
        """
        if not self._has_texts:
            return tuple(dict.fromkeys(chunk_ids))
        found: dict[str, None] = {}
        for chunk_id in chunk_ids:
            if self._digests.get(chunk_id) == text_sha256:
                found[chunk_id] = None
            elif chunk_id not in self._digests:
                # One that moved may differ in its markup.
                found |= dict.fromkeys(
                    now for now in self._moved.get(chunk_id, ()) if now in self._digests
                )
        return tuple(found or self._elsewhere.get(text_sha256, ()))

    def look_for(self, texts: Iterable[tuple[Iterable[str], str]]) -> None:
        """Look through all chunks for those of some texts that `of` does not find.

        Args:
            texts: Each as the ids of its chunks, and its digest.
        """
        missing = {digest for chunk_ids, digest in texts if not self.of(chunk_ids, digest)}
        for chunk in self._dataset.chunks() if missing else ():
            digest = label_text_sha256(chunk.text)
            if digest in missing:
                self._elsewhere.setdefault(digest, []).append(chunk.chunk_id)
                self._digests[chunk.chunk_id] = digest

    def has(self, chunk_id: str) -> bool:
        """Whether a chunk is in the set, under this id or another."""
        return any(name in self._digests for name in (chunk_id, *self._moved.get(chunk_id, ())))

    def digest(self, chunk_id: str) -> str:
        """Return the digest of a chunk's text; "" where there is no such chunk."""
        return self._digests.get(chunk_id, "")
