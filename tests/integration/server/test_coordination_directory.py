"""A start that fails because of its directories changes nothing in them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.server.node import Node
from tests.folders import contents


def _node(*folders: Path, **options: str) -> Node:
    return Node(
        {
            "log.dirs": ",".join(map(str, folders)),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            **{name.replace("_", "."): text for name, text in options.items()},
        }
    )


async def _run_once(*folders: Path, **options: str) -> None:
    node = _node(*folders, **options)
    await node.start()
    await node.stop()


def lose_tree(folder: Path) -> None:
    """Delete the coordination tree of a directory."""
    for path in folder.glob("cluster.*"):
        path.unlink()


def _lose_journal(folder: Path) -> None:
    (folder / "cluster.snapshot").write_bytes(b"snapshot")
    (folder / "cluster.journal.0").unlink()


def _damage_owner(folder: Path) -> None:
    (folder / "meta.properties").write_text("garbage\n")


def _damage_and_lose(folder: Path) -> None:
    _damage_owner(folder)
    lose_tree(folder)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lose_tree, r"metadata \(files named cluster\.\*\) is missing from"),
        (_lose_journal, r"cluster\.snapshot is damaged"),
        (_damage_owner, r"meta\.properties cannot be read"),
        (_damage_and_lose, r"meta\.properties cannot be read"),
    ],
)
async def test_failed_start_leaves_the_directory_untouched(
    tmp_path: Path, harm: Callable[[Path], None], reason: str
) -> None:
    """The same start fails again, and a backup can be restored into the directory."""
    folder = tmp_path / "data"
    await _run_once(folder)
    harm(folder)
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(OttlaError, match=reason):
            await _node(folder).start()
        assert contents(tmp_path) == before


async def test_a_start_as_another_broker_leaves_the_directory_untouched(tmp_path: Path) -> None:
    """`broker.id` is compared with `meta.properties` before anything is opened."""
    folder = tmp_path / "data"
    await _run_once(folder)
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match="holds the data of broker 1, and this is broker 2"):
        await _node(folder, broker_id="2").start()
    assert contents(tmp_path) == before


async def test_a_missing_metadata_directory_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    """A `coordination.dir` that is not mounted is an error, and is not created."""
    folder, metadata = tmp_path / "data", tmp_path / "metadata"
    await _run_once(folder, coordination_dir=str(metadata))
    metadata.rename(tmp_path / "elsewhere")
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match=rf"missing from {metadata}.*coordination\.dir"):
        await _node(folder, coordination_dir=str(metadata)).start()
    assert contents(tmp_path) == before


async def test_directories_of_two_clusters_are_rejected_untouched(tmp_path: Path) -> None:
    """The second directory is checked before the first one is opened."""
    one, two = tmp_path / "one", tmp_path / "two"
    await _run_once(one)
    await _run_once(two)
    lose_tree(two)
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match=rf"{two} holds data of the cluster"):
        await _node(one, two).start()
    assert contents(tmp_path) == before


async def test_directory_without_a_cluster_id_can_be_used(tmp_path: Path) -> None:
    """Old brokers wrote no `cluster.id`; the broker adds its own, as Kafka does."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    await _run_once(folder)
    assert "cluster.id=" in (folder / "meta.properties").read_text()


_FORMATTED = "version=1\nnode.id=1\ndirectory.id=Tbr8PDF9jw0Rvt13i0Hq1g\ncluster.id=abc\n"
_OF_ZOOKEEPER = "version=0\nbroker.id=1\ncluster.id=abc\n"


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        (
            _FORMATTED,
            "bootstrap.checkpoint",
            r"formatted it.*Delete meta\.properties .*'ottla log format",
        ),
        (_FORMATTED, "__cluster_metadata-0/x.log", r"KRaft.*cannot read.*ottla topic copy"),
        (_OF_ZOOKEEPER, "t-0/x.log", r"ottla zookeeper import --connect HOST:PORT --data {}"),
    ],
    ids=["formatted", "KRaft", "ZooKeeper"],
)
async def test_directory_of_apache_kafka_is_refused_with_the_way_to_use_it(
    tmp_path: Path, owner: str, name: str, remedy: str
) -> None:
    """The remedy depends on how Apache Kafka used the directory; it is left untouched."""
    folder = tmp_path / "data"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_bytes(b"")
    (folder / "meta.properties").write_text(owner)
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match=remedy.format(folder)):
        await _node(folder).start()
    assert contents(tmp_path) == before
