import os

import pytest

from ragforge.errors import DataError, UsageError
from ragforge.files.page_files import page_files

BLOCK = 'ragforgeBlock("queries-detail-{0}","{0}")\n'


def write(page, *contents, text="page"):
    """Write a page with some files; return the address that it would link to."""
    with page_files(page) as files:
        for place, content in enumerate(contents):
            files.put(f"queries-detail-{place}.js", BLOCK.format(content))
        files.write_page([f"{text} {files.address}"])
        return files.address


def fail_half_way(page):
    """Put a file, and go no further."""
    with page_files(page) as files:
        files.put("queries-detail-0.js", BLOCK.format(2))
        raise RuntimeError("no judgment")


def names(folder):
    """Return what is below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_page_links_to_the_files_beside_it(tmp_path):
    """They are found without a server, wherever both are taken."""
    address = write(tmp_path / "my report.html", 1, 2)

    assert address.startswith("./my%20report_files/")
    assert (tmp_path / "my report.html").read_text() == f"page {address}"
    folder = tmp_path / "my report_files" / address.split("/")[2]
    assert (folder / "queries-detail-1.js").read_text() == BLOCK.format(2)


def test_page_without_files_has_no_folder(tmp_path):
    """Most sets fit into one file."""
    assert write(tmp_path / "page.html") == ""
    assert names(tmp_path) == ["page.html"]


def test_equal_contents_have_equal_names(tmp_path):
    """The same report is the same bytes."""
    first = write(tmp_path / "page.html", 1, 2)

    assert write(tmp_path / "page.html", 1, 2) == first
    assert len(names(tmp_path / "page_files")) == 3


def test_files_of_an_older_page_go_when_the_page_is_replaced(tmp_path):
    """Nightly reports would fill the disk."""
    page = tmp_path / "page.html"
    write(page, 1)

    address = write(page, 2)

    assert names(tmp_path / "page_files")[0] == address.split("/")[2]
    assert len(names(tmp_path / "page_files")) == 2
    write(page)
    assert names(tmp_path) == ["page.html"]


def test_a_file_that_was_lost_comes_back(tmp_path):
    """A folder with the right name may still be torn."""
    address = write(tmp_path / "page.html", 1, 2)
    lost = tmp_path / "page_files" / address.split("/")[2] / "queries-detail-1.js"
    lost.unlink()

    write(tmp_path / "page.html", 1, 2)

    assert lost.exists()


def test_what_fails_half_way_leaves_the_old_page_whole(tmp_path):
    """A full disk at night must not cost yesterday's report."""
    page = tmp_path / "page.html"
    write(page, 1)
    before = names(tmp_path), page.read_text()

    with pytest.raises(RuntimeError, match="no judgment"):
        fail_half_way(page)

    assert (names(tmp_path), page.read_text()) == before


def no_space():
    """Yield part of a page, until the disk is full."""
    yield "<!DOCTYPE html>"
    raise OSError(28, "No space left on device")


def test_page_that_cannot_be_written_keeps_the_files_of_the_old_one(tmp_path):
    """The page is replaced last, and until then the old one is read."""
    page = tmp_path / "page.html"
    address = write(page, 1)

    with page_files(page) as files:
        files.put("queries-detail-0.js", BLOCK.format(2))
        with pytest.raises(DataError, match="No space left"):
            files.write_page(no_space())

    assert page.read_text() == f"page {address}"
    assert (tmp_path / "page_files" / address.split("/")[2] / "queries-detail-0.js").exists()


def test_foreign_files_in_the_folder_stay(tmp_path):
    """Browsers call the folder of a saved page the same."""
    folder = tmp_path / "page_files"
    (folder / "0123456789abcdef").mkdir(parents=True)
    (folder / "logo.png").write_bytes(b"png")
    (folder / "0123456789abcdef" / "queries-detail-0.js").write_text("alert(1)")
    before = names(folder)

    write(tmp_path / "page.html", 1)
    write(tmp_path / "page.html", 2)
    write(tmp_path / "page.html")

    assert names(folder) == before


def test_foreign_folder_of_the_same_name_is_not_replaced(tmp_path):
    """Nothing of somebody else's is removed, however unlikely."""
    address = write(tmp_path / "page.html", 1)
    place = tmp_path / "page_files" / address.split("/")[2]
    (place / "notes.txt").write_text("mine")

    with pytest.raises(DataError, match="is not of a report"):
        write(tmp_path / "page.html", 1)

    assert (place / "notes.txt").read_text() == "mine"


def test_linked_folder_is_not_followed(tmp_path):
    """A link out of the folder must not have what it leads to removed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "queries-detail-0.js").write_text(BLOCK.format(0))
    (tmp_path / "page_files").mkdir()
    (tmp_path / "page_files" / "0123456789abcdef").symlink_to(elsewhere)

    write(tmp_path / "page.html")

    assert names(elsewhere) == ["queries-detail-0.js"]


def test_file_in_the_place_of_the_folder_is_told_at_once(tmp_path):
    """Minutes of reading would come before."""
    (tmp_path / "page_files").write_text("mine")

    with (
        pytest.raises(UsageError, match="page_files: is no folder"),
        page_files(tmp_path / "page.html"),
    ):
        pass


def test_what_a_killed_writer_left_is_removed(tmp_path):
    """A folder that nobody links to stays for ever otherwise."""
    folder = tmp_path / "page_files"
    folder.mkdir()
    host = os.uname().nodename.replace("-", "_").replace(".", "_")
    (folder / f".{host}-999999999-x.making").mkdir()

    write(tmp_path / "page.html", 1)

    assert not [name for name in names(folder) if "999999999" in name]
