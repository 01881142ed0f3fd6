"""The owners of log directories: they are read, refused, reported and written."""

from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.rng import SeededRng
from ottla.storage.directories import formatting
from ottla.storage.files import meta_properties
from ottla.storage.files.meta_properties import KRAFT, ZOOKEEPER, MetaProperties

FILES = RealFileSystem()


def _owned(folder: Path, *, version: int = KRAFT, cluster: str = "c", node: int = 1) -> str:
    formatting.write_owner(FILES, str(folder), MetaProperties(version, cluster, node, "id"))
    return str(folder)


def test_owner_is_written_and_read_in_both_versions(tmp_path: Path) -> None:
    """Version 1 has `node.id`, version 0 `broker.id`."""
    kraft = _owned(tmp_path / "a")
    assert (tmp_path / "a" / "meta.properties").read_text() == (
        "cluster.id=c\ndirectory.id=id\nnode.id=1\nversion=1\n"
    )
    legacy = _owned(tmp_path / "b", version=ZOOKEEPER)
    assert "broker.id=1\n" in (tmp_path / "b" / "meta.properties").read_text()
    owners = formatting.read_owners(FILES, [legacy, kraft, str(tmp_path / "c")])
    assert owners.empty == [str(tmp_path / "c")]
    assert owners.by_directory[kraft] == MetaProperties(KRAFT, "c", 1, "id")
    assert owners.by_directory[legacy] == MetaProperties(ZOOKEEPER, "c", 1, "id")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version=7\n", "Unknown meta.properties version number 7"),
        ("version=1\nnode.id=1\n", "cluster.id was not found."),
        ("version=1\ncluster.id=c\n", "node.id was not found."),
        ("garbage\n", "not of the form"),
        ("", "invalid literal"),
    ],
)
def test_damaged_owner_is_no_owner(tmp_path: Path, content: str, reason: str) -> None:
    """The directory counts as unreadable, and the report has the reason."""
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(ValueError, match=reason):
        meta_properties.parse(content.encode())
    assert formatting.read_owners(FILES, [str(tmp_path)]).unreadable == [str(tmp_path)]
    report = formatting.examine(FILES, [str(tmp_path)], is_kraft=True)
    assert reason in report.problems[0]


def test_directory_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    """The error names the file and both ids."""
    owners = formatting.read_owners(FILES, [_owned(tmp_path)])
    formatting.verify(owners, "c", 1)
    with pytest.raises(ConfigError, match="Expected other, but read c"):
        formatting.verify(owners, "other", 1)
    with pytest.raises(ConfigError, match="Stored node id 1 doesn't match previous node id 2"):
        formatting.verify(owners, "c", 2)


def test_formatted_directories_are_skipped_on_request(tmp_path: Path) -> None:
    """Without the request one of them is an error."""
    one, two = _owned(tmp_path / "one"), str(tmp_path / "two")
    owners = formatting.read_owners(FILES, [one, two])
    with pytest.raises(ConfigError, match=f"Log directory {one} is already formatted"):
        formatting.select_empty(owners, ignores_formatted=False)
    assert formatting.select_empty(owners, ignores_formatted=True) == [two]


def test_file_in_place_of_a_directory_cannot_be_formatted(tmp_path: Path) -> None:
    """If there is no other directory, that is an error."""
    path = tmp_path / "file"
    path.touch()
    owners = formatting.read_owners(FILES, [str(path)])
    with pytest.raises(ConfigError, match="No available log directories to format"):
        formatting.select_empty(owners, ignores_formatted=False)
    with pytest.raises(ConfigError, match=r"Error while writing meta\.properties file"):
        formatting.write_owner(FILES, str(path), MetaProperties(KRAFT, "c", 1))


def test_report_names_what_is_wrong(tmp_path: Path) -> None:
    """Missing directories, files, other clusters, other nodes, and the wrong mode."""
    good = _owned(tmp_path / "a")
    other, node = _owned(tmp_path / "b", cluster="x"), _owned(tmp_path / "c", node=2)
    (tmp_path / "d").touch()
    (tmp_path / "e").mkdir()
    names = [good, other, node, *(str(tmp_path / name) for name in "def")]
    report = formatting.examine(FILES, names, is_kraft=False)
    assert report.found == [good, other, node, str(tmp_path / "e")]
    assert report.owner == MetaProperties(KRAFT, "c", 1, "id")
    assert report.problems == [
        "Mismatched cluster IDs between storage directories.",
        "Mismatched node IDs between storage directories.",
        f"{tmp_path / 'd'} is not a directory",
        f"{tmp_path / 'e'} is not formatted.",
        f"{tmp_path / 'f'} does not exist",
        formatting._NOT_LEGACY,
    ]
    legacy = _owned(tmp_path / "g", version=ZOOKEEPER)
    assert formatting.examine(FILES, [legacy], is_kraft=True).problems == [formatting._LEGACY]


def test_ids_of_directories_differ() -> None:
    """An id has 22 characters and does not begin with a dash."""
    rng = SeededRng(1)
    ids = {formatting.directory_id(rng) for _ in range(100)}
    assert len(ids) == 100
    assert all(len(text) == 22 and text[0] != "-" for text in ids)
