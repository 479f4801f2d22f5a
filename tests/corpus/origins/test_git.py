import stat
from pathlib import Path

import pytest

from ragforge.corpus.origins.git import parse_git
from ragforge.errors import DataError, UsageError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"


def test_documents_are_those_of_the_revision_not_of_the_working_tree(repository, read):
    """Half-written pages lie about in working trees."""
    repository.commit(**{"a.md": "A", "guide/b.md": "B", "c.py": "no document"})
    repository.put("a.md", "half-written")

    assert read(f"git:{repository.path}") == {"a.md": "A", "guide/b.md": "B"}


def test_branch_tag_and_commit_are_revisions(repository, read):
    """Each is what somebody has at hand."""
    first = repository.commit(**{"a.md": "one"})
    repository.git("tag", "-a", "v1@x", "-m", "x")
    repository.git("branch", "feature/x")
    repository.commit(**{"a.md": "two"})

    revisions = (first, first[:9], "v1@x", "feature/x", "main~1", "main@{1}")
    found = [read(f"git:{repository.path}@{revision}") for revision in revisions]

    assert found == [{"a.md": "one"}] * 6
    assert read(f"git:{repository.path}@main") == {"a.md": "two"}


def test_ids_are_relative_to_the_folder(repository, read):
    """They are those of the same folder given as a folder."""
    repository.commit(**{"docs/guide/a.md": "A", "other.md": "O"})

    assert read(f"git:{repository.path}@HEAD:docs") == {"guide/a.md": "A"}
    assert read(f"git:{repository.path}@:docs/guide/") == {"a.md": "A"}
    assert read(repository.path / "docs") == {"guide/a.md": "A"}


def test_bare_repository_is_read(repository, read, tmp_path):
    """Servers have nothing else."""
    repository.commit(**{"a.md": "A"})
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))

    assert read(f"git:{tmp_path / 'bare.git'}@main") == {"a.md": "A"}


def test_changes_deletions_and_renames_are_seen(repository, read):
    """What is gone there must be gone here."""
    repository.commit(**{"a.md": "A", "b.md": "B", "x/c.md": "C", "x/d.md": "D"})
    read(f"git:{repository.path}")
    repository.commit(**{"a.md": "A2", "b.md": None, "x/c.md": None, "x/d.md": None, "y.md": "C"})

    assert read(f"git:{repository.path}") == {"a.md": "A2", "y.md": "C"}


def test_only_what_changed_is_written(repository, read):
    """A night's work grows with what changed, not with the corpus."""
    repository.commit(**{"a.md": "A", "b.md": "B"})
    read(f"git:{repository.path}")
    before = read.state()
    repository.commit(**{"b.md": "B2"})
    read(f"git:{repository.path}")
    after = read.state()

    assert {path.name for path in before if before[path] != after[path]} == {
        "b.md",
        "listing.jsonl",
    }


def test_nothing_changed_writes_nothing(repository, read):
    """Most nights."""
    repository.commit(**{"a.md": "A"})
    read(f"git:{repository.path}")
    before = read.state()

    read(f"git:{repository.path}")

    assert read.state() == before


def test_file_becomes_a_folder_and_back(repository, read):
    """The mirror holds one of them at a time."""
    repository.commit(**{"a.md": "file"})
    read(f"git:{repository.path}")
    repository.put("a.md", None)
    repository.commit(**{"a.md/b.md": "inside"})
    inside = read(f"git:{repository.path}")
    repository.put("a.md/b.md", None)
    (repository.path / "a.md").rmdir()
    repository.commit(**{"a.md": "file"})

    assert inside == {"a.md/b.md": "inside"}
    assert read(f"git:{repository.path}") == {"a.md": "file"}


def test_no_hook_filter_or_other_command_of_the_repository_runs(repository, read, tmp_path):
    """Whoever can push to a documentation must not run commands where it is evaluated."""
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    script.chmod(stat.S_IRWXU)
    repository.commit(**{".gitattributes": "*.md filter=x diff=x\n", "a.md": "A"})
    for key in ("filter.x.smudge", "diff.x.textconv", "core.fsmonitor", "core.pager"):
        repository.git("config", key, str(script))
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (repository.path / ".git" / "hooks" / hook).symlink_to(script)

    assert read(f"git:{repository.path}") == {"a.md": "A"}
    assert not (tmp_path / "ran").exists()


def test_repository_is_not_written_to(repository, read):
    """Others work in it."""
    repository.commit(**{"a.md": "A"})
    repository.put("a.md", "work")
    before = {path: path.stat().st_mtime_ns for path in repository.path.rglob("*")}

    read(f"git:{repository.path}@HEAD")

    assert {path: path.stat().st_mtime_ns for path in repository.path.rglob("*")} == before


def test_odd_but_harmless_names_are_kept(repository, read):
    """Quotes, blanks and letters of all scripts are in names of pages."""
    names = ("it's.md", 'a "b".md', "ä é/ж.md", " x .md", "a:b@c.md", "-f.md", "$(x).md")
    repository.commit(**dict.fromkeys(names, "text"))

    assert set(read(f"git:{repository.path}")) == set(names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a\nb.md", "has control characters in its path"),
        ("\x1b[2J.md", "has control characters in its path"),
        ("a\\..\\b.md", "has a path that is not plain"),
        (b"\xff.md", "has a name that is not UTF-8"),
        ("..\u2028.md", "has control characters in its path"),
    ],
)
def test_hostile_name_is_told_and_passed_over(repository, read, name, reason):
    """It must not forge a line of a log, nor end the reading."""
    blob = repository.blob("text")
    repository.commit_tree(("100644", "blob", blob, name), ("100644", "blob", blob, "b.md"))

    assert read(f"git:{repository.path}@main") == {"b.md": "text"}
    assert [note.rpartition(": ")[2] for note in read.notes] == [reason]


def test_path_out_of_the_mirror_is_told_and_passed_over(repository, read, tmp_path):
    """A tree made by hand may hold `..`, and nothing may be written outside."""
    blob = repository.blob("text")
    repository.commit_tree(("100644", "blob", blob, "evil.md"))
    inner = repository.git("rev-parse", "main^{tree}")
    raw = b"40000 ..\0" + bytes.fromhex(inner) + b"100644 b.md\0" + bytes.fromhex(blob)
    tree = repository.git(
        "hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=raw, text=False
    )
    commit = repository.git("commit-tree", tree.decode().strip(), "-m", "x")

    assert read(f"git:{repository.path}@{commit}") == {"b.md": "text"}
    assert read.notes == [
        f"git:{repository.path}@{commit}: ../evil.md: passed over: has a path that is not plain"
    ]
    assert list(tmp_path.rglob("evil.md")) == []


def test_links_and_submodules_are_told_and_not_followed(repository, read):
    """A link leads out of the repository as easily as within."""
    blob, commit = repository.blob("/etc/passwd"), repository.commit(**{"a.md": "A"})
    repository.commit_tree(
        ("120000", "blob", blob, "link.md"),
        ("160000", "commit", commit, "module"),
        ("100755", "blob", repository.blob("B"), "b.md"),
    )

    assert read(f"git:{repository.path}@main") == {"b.md": "B"}
    assert [note.partition("@main: ")[2] for note in read.notes] == [
        "link.md: passed over: is a link, which is not followed",
        "module: passed over: is a submodule",
    ]


def test_pointer_of_lfs_is_told_each_time_and_read_once(repository, read):
    """Its three lines are not what the document says."""
    repository.commit(**{"a.md": POINTER, "b.md": "B"})

    assert [read(f"git:{repository.path}") for _ in range(2)] == [{"b.md": "B"}] * 2
    assert [note.partition("passed over: ")[2] for note in read.notes] == [
        "is a pointer of Git LFS; its text is not in the repository"
    ] * 2


def test_large_document_is_whole(repository, read):
    """It comes in several pieces."""
    text = "0123456789abcde\n" * 200_000
    repository.commit(**{"a.txt": text, "b.txt": "after it", "c.txt": ""})

    assert read(f"git:{repository.path}") == {"a.txt": text, "b.txt": "after it"}


def test_patterns_apply_and_nothing_else_is_fetched(repository, read):
    """A repository holds more than documentation."""
    repository.commit(**{"docs/a.md": "A", "src/readme.md": "R", ".github/x.md": "X"})

    found = read(f"git:{repository.path}", exclude=["src"])

    assert found == {"docs/a.md": "A"}
    assert [path.name for path in read.place.rglob("*.md")] == ["a.md"]


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("@nowhere", r"@nowhere: no such revision; expected git:REPOSITORY, "),
        ("@main:nowhere", r"no such folder at main"),
        ("@main:a.md", r"a\.md is no folder"),
        ("@main:code", r"@main:code: expected documents \(.*\), got 1 files \(\.py: 1\)"),
        ("/code", r"git cannot read it: not a git repository"),
        ("/absent@main", r"/absent@main: no such folder"),
    ],
)
def test_missing_part_is_a_clear_data_error(repository, read, tail, message):
    """The message says which part is missing."""
    repository.commit(**{"a.md": "A", "code/b.py": "B"})

    with pytest.raises(DataError, match=message):
        read(f"git:{repository.path}{tail}")


def test_missing_git_is_a_clear_data_error(repository, read, monkeypatch):
    """Containers often lack it."""
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(DataError, match="needs git, which is not there"):
        read(f"git:{repository.path}")


def test_object_that_is_missing_leaves_the_mirror_as_it_was(repository, read):
    """A shallow or damaged clone must not look like deletions."""
    repository.commit(**{"a.md": "A", "b.md": "B"})
    read(f"git:{repository.path}")
    before = read.state()
    repository.commit(**{"a.md": "A2", "b.md": "B2"})
    blob = repository.git("rev-parse", "HEAD:b.md")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(DataError, match=f"object {blob} cannot be read"):
        read(f"git:{repository.path}")

    kept = {path: held for path, held in read.state().items() if "incoming" not in path.parts}
    assert kept == before


def test_variables_that_git_gives_its_hooks_do_not_count(repository, read, monkeypatch, tmp_path):
    """Run by a hook of another repository, it would read that one."""
    repository.commit(**{"a.md": "A"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))

    assert read(f"git:{repository.path}") == {"a.md": "A"}


@pytest.mark.parametrize(
    "spec", ["git:", "git:https://host/x.git", "git:x@--output=y", "git:x@main:../y"]
)
def test_spec_that_is_none_is_a_usage_error(spec):
    """Nothing of it may become an option of git."""
    with pytest.raises(UsageError, match="expected git:REPOSITORY, git:REPOSITORY@REVISION or"):
        parse_git(spec)


def test_repository_may_have_an_at_sign_in_its_path(in_tmp_path):
    """Homes of some systems are named after addresses."""
    Path("me@corp/x").mkdir(parents=True)

    spec = parse_git("git:me@corp/x@v1@y:docs")

    assert (str(spec.repository), spec.revision, spec.folder) == ("me@corp/x", "v1@y", "docs")
    assert parse_git("git:me@corp/x").revision == "HEAD"


@pytest.mark.parametrize("spec", ["git:https://me:hunter2@h/x", "git:me:hunter2@h:x.git"])
def test_password_of_another_machine_is_not_repeated(spec):
    """What is refused goes into logs."""
    with pytest.raises(UsageError, match="clone it first") as caught:
        parse_git(spec)

    assert "hunter2" not in str(caught.value)
