import gzip
import sys
import types
from pathlib import Path

import pytest

from ragforge.errors import DataError, UsageError

fsspec = pytest.importorskip("fsspec")


class BucketFiles:
    """A folder of fsspec's file system in memory."""

    def __init__(self, name):
        self.url = f"memory://{name}"
        self._system = fsspec.filesystem("memory")

    def put(self, **files):
        for name, content in files.items():
            raw = content if isinstance(content, bytes) else content.encode()
            self._system.pipe(f"{self.url}/{name}", raw)

    def remove(self, *names):
        for name in names:
            self._system.rm(f"{self.url}/{name}")


@pytest.fixture
def bucket(tmp_path):
    found = BucketFiles(tmp_path.name)
    yield found
    fsspec.filesystem("memory").store.clear()


def test_everything_below_the_prefix_is_read(bucket, read):
    """Ids are relative to it, as for a folder."""
    bucket.put(**{"docs/a.md": "A", "docs/guide/b.md": "B", "docs/x.png": "P", "other.md": "O"})

    assert read(f"{bucket.url}/docs") == {"a.md": "A", "guide/b.md": "B"}
    assert read(f"{bucket.url}/docs/") == {"a.md": "A", "guide/b.md": "B"}


def test_changes_deletions_and_renames_are_seen(bucket, read):
    """What is gone there must be gone here."""
    bucket.put(**{"a.md": "A", "b.md": "B", "c.md": "C"})
    read(bucket.url)
    bucket.remove("b.md", "c.md")
    bucket.put(**{"a.md": "a", "d/c.md": "C"})

    assert read(bucket.url) == {"a.md": "a", "d/c.md": "C"}


def test_only_what_changed_is_fetched(bucket, read):
    """Taking things out is paid for."""
    bucket.put(**{"a.md": "A", "b.md": "B"})
    read(bucket.url)
    before = read.state()
    bucket.put(**{"b.md": "B2"})
    read(bucket.url)
    after = read.state()

    changed = {path.name for path in before if before[path] != after[path]}
    assert changed == {"b.md", "listing.jsonl"}


def test_patterns_apply_and_nothing_else_is_fetched(bucket, read):
    """A bucket holds more than documentation."""
    bucket.put(**{"docs/a.md": "A", "drafts/b.md": "B", "large.bin": "x"})

    assert read(bucket.url, exclude=["drafts"]) == {"docs/a.md": "A"}
    assert [path.name for path in read.place.rglob("files/**/*.*")] == ["a.md"]


def test_address_of_one_file_is_that_file(bucket, read):
    """Exports lie under one address; a file given by name is read whatever it is."""
    bucket.put(**{"rows.jsonl.gz": gzip.compress(b'{"id": 7, "text": "t"}\n'), "a.md": "A"})

    assert read(f"{bucket.url}/rows.jsonl.gz") == {"rows.jsonl.gz#7": "t"}


def test_local_address_is_read(read, tmp_path):
    """What holds for one system of fsspec holds for others."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("A")

    assert read(f"file://{tmp_path}/docs") == {"a.md": "A"}


def test_many_files_are_fetched_whole(bucket, read):
    """Several come at once, and each must get its own text."""
    texts = {f"{number}.md": f"text of {number}" for number in range(100)}
    bucket.put(**texts)

    assert read(bucket.url) == texts


def test_empty_bucket_is_an_error_and_the_mirror_stays(bucket, read):
    """A wrong prefix or a lost permission must not retire all queries."""
    bucket.put(**{"docs/a.md": "A", "b.md": "B"})
    read(f"{bucket.url}/docs")
    before = read.state()
    bucket.remove("docs/a.md")

    with pytest.raises(DataError, match=r"docs: (nothing is there|cannot be listed)"):
        read(f"{bucket.url}/docs")

    assert read.state() == before


def test_names_that_lead_out_of_the_mirror_are_told_and_passed_over(bucket, read, tmp_path):
    """In a bucket a name is any text."""
    names = ("x/../../evil.md", "y//evil.md", "a\nb.md", "c\\d.md", f"{'n' * 300}.md")
    store = fsspec.filesystem("memory")
    bucket.put(**{"a.md": "A"})
    [(key, file)] = store.store.items()
    store.store.update({key.replace("a.md", name): file for name in names})

    assert read(bucket.url) == {"a.md": "A"}
    assert len(read.notes) == len(names)
    assert list(tmp_path.rglob("evil.md")) == []


class Objects(fsspec.AbstractFileSystem):
    """Keys that know no folders, as those of a bucket."""

    protocol = "objects"
    texts = types.MappingProxyType({"kb/a.md": b"A", "kb/a.md/b.md": b"B"})

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        return {key: {"ETag": "1"} for key in self.texts}

    def get_file(self, path, target, **options):
        Path(target).write_bytes(self.texts[path])


def test_name_that_is_also_a_folder_is_told_and_passed_over(read):
    """A bucket can hold both, a folder cannot."""
    fsspec.register_implementation("objects", Objects, clobber=True)

    assert read("objects://kb") == {"a.md/b.md": "B"}
    assert read.notes == ["objects://kb: a.md: passed over: is the name of a folder too"]


def test_missing_package_of_a_kind_of_bucket_is_named(read, monkeypatch):
    """fsspec alone reaches few of them."""
    monkeypatch.setitem(sys.modules, "s3fs", None)

    with pytest.raises(UsageError, match="s3://kb/docs: needs a package: Install s3fs"):
        read("s3://kb/docs")


def test_missing_fsspec_is_named(read, monkeypatch):
    """The extra is what installs it."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(UsageError, match=r"needs the package fsspec; .*'ragforge\[buckets\]'"):
        read("s3://kb/docs")


def test_unknown_kind_of_address_is_a_data_error(read):
    """The message repeats it."""
    with pytest.raises(DataError, match="s4://kb: cannot be listed: ValueError: Protocol not"):
        read("s4://kb")
