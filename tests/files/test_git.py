import subprocess

import pytest

from ragforge.errors import DataError
from ragforge.files.git import read_from_branch


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Run git in a new repository whose branch is main."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder = tmp_path / "repository"
    (folder / "set").mkdir(parents=True)

    def run(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    run("init", "-b", "main")
    return run


@pytest.fixture
def committed(git, tmp_path):
    """A file committed on main, and changed since."""
    path = tmp_path / "repository" / "set" / "b.json"
    path.write_text("as on main", "utf-8")
    git("add", ".")
    git("commit", "-m", "add")
    path.write_text("as in the working directory", "utf-8")
    return path


def test_a_file_is_read_as_the_branch_has_it(committed):
    """A pull request must not be held against a baseline that it brings itself."""
    assert read_from_branch(committed).text == "as on main"


def test_a_file_that_was_deleted_since_is_still_read(committed):
    """Nor may it pass by deleting the baseline."""
    committed.unlink()

    assert read_from_branch(committed).text == "as on main"


def test_the_remote_branch_goes_before_the_local_one(committed, git):
    """A local main is often old."""
    git("update-ref", "refs/remotes/origin/main", "HEAD")

    assert read_from_branch(committed).where == f"origin/main:{committed}"


def test_master_does_where_there_is_no_main(committed, git):
    """Older repositories call it so."""
    git("branch", "-m", "master")

    assert read_from_branch(committed).where == f"master:{committed}"


def test_a_file_that_was_never_committed_is_refused(committed):
    """The message must tell what to do."""
    with pytest.raises(DataError, match=r"new\.json: is not on main; commit it there first"):
        read_from_branch(committed.parent / "new.json")


def test_a_repository_without_such_a_branch_is_refused(committed, git):
    """That is what a shallow checkout of a pull request looks like."""
    git("branch", "-m", "feature")

    with pytest.raises(DataError, match=r"has none of origin/main, main.*`git fetch"):
        read_from_branch(committed)


def test_outside_of_a_repository_there_is_no_branch(tmp_path, monkeypatch):
    """The message must say so, and not what git says."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(DataError, match="it is in no git repository"):
        read_from_branch(tmp_path / "b.json")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """A mistyped path is the commonest mistake."""
    with pytest.raises(DataError, match="no such directory"):
        read_from_branch(tmp_path / "none" / "b.json")


def test_without_git_the_message_says_so(tmp_path, monkeypatch):
    """Slim containers have none."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DataError, match="there is no git here"):
        read_from_branch(tmp_path / "b.json")


def test_a_name_that_looks_like_an_option_is_a_name(committed, git):
    """A path is data, and git takes options anywhere."""
    path = committed.parent / "--output=x"
    path.write_text("odd", "utf-8")
    git("add", ".")
    git("commit", "-m", "odd")

    assert read_from_branch(path).text == "odd"


def test_a_repository_that_lacks_an_object_runs_no_command_to_fetch_it(committed, git, tmp_path):
    """A received dataset may bring a repository whose settings name a command."""
    folder, trace = tmp_path / "repository", tmp_path / "ran"
    blob = subprocess.run(
        ["git", "rev-parse", "main:set/b.json"], cwd=folder, check=True, capture_output=True
    ).stdout.decode()
    (folder / ".git" / "objects" / blob[:2] / blob[2:].strip()).unlink()
    git("config", "core.repositoryFormatVersion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.url", str(folder / ".git"))
    git("config", "remote.origin.uploadpack", f"touch {trace}; git-upload-pack")

    with pytest.raises(DataError, match="is not on main"):
        read_from_branch(committed)

    assert not trace.exists()
