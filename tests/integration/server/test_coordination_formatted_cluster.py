"""Formatting before the first start: the broker's cluster has the chosen id."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import OttlaError
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.options.option_tables import parse_broker_settings
from ottla.server.coordination.formatted_cluster import Format, Formatted, format_directories
from ottla.server.node import Node
from ottla.storage.directories import formatting
from tests.folders import contents
from tests.integration.server.test_coordination_directory import lose_tree


def _settings(*folders: Path, **options: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "log.dirs": ",".join(map(str, folders)),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        **{name.replace("_", "."): text for name, text in options.items()},
    }


def _format(settings: dict[str, str], cluster_id: str, **wanted: object) -> Formatted:
    return format_directories(
        parse_broker_settings(settings).snapshot,
        Format(cluster_id, **wanted),  # type: ignore[arg-type]
        files=RealFileSystem(),
        clock=RealClock(),
        rng=SystemRng(),
    )


def run_broker(settings: dict[str, str], then: Callable[[Node], object] = lambda node: None) -> str:
    """Start and stop a broker, and return the id of its cluster; `then` is called in between."""

    async def run() -> str:
        node = Node(settings)
        await node.start()
        then(node)
        await node.stop()
        return node.cluster_id

    return asyncio.run(run())


def test_cluster_has_the_id_that_it_was_formatted_with(tmp_path: Path) -> None:
    """Also after a restart; the broker leaves `meta.properties` as it is."""
    one, two = tmp_path / "one", tmp_path / "two"
    settings = _settings(one, two)
    assert _format(settings, "my cluster").directories == [str(one), str(two)]
    before = (one / "meta.properties").read_text(), (two / "meta.properties").read_text()
    assert "cluster.id=my cluster\n" in before[0]
    assert before[0] != before[1]
    assert run_broker(settings) == run_broker(settings) == "my cluster"
    assert before == ((one / "meta.properties").read_text(), (two / "meta.properties").read_text())


def test_directories_that_a_broker_creates_are_formatted(tmp_path: Path) -> None:
    """A broker with `process.roles` that was not formatted writes `meta.properties` of version 1."""
    one, two = tmp_path / "one", tmp_path / "two"
    settings = _settings(one, two)
    cluster_id = run_broker(settings)
    report = formatting.examine(RealFileSystem(), [str(one), str(two)], is_kraft=True)
    assert report.problems == []
    assert report.owner is not None
    assert report.owner.cluster_id == cluster_id
    assert len(report.owner.directory_id or "") == 22
    settings["process.roles"] = ""
    assert run_broker(settings) == cluster_id


def test_features_of_a_formatted_cluster_have_the_chosen_levels(tmp_path: Path) -> None:
    """A feature of level 0 is off."""
    settings = _settings(tmp_path / "data")
    _format(settings, "c", levels={"transaction.version": 1, "group.version": 0})
    levels: list[object] = []
    run_broker(settings, lambda node: levels.append(dict(node.broker.features.levels)))
    assert levels == [{"transaction.version": 1}]


def test_formatting_twice_changes_nothing(tmp_path: Path) -> None:
    """Neither the data of a broker nor its cluster's id is lost."""
    settings = _settings(tmp_path / "data")
    _format(settings, "c")
    run_broker(settings)
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match="is already formatted"):
        _format(settings, "c")
    with pytest.raises(OttlaError, match="Expected d, but read c"):
        _format(settings, "d", ignores_formatted=True)
    assert _format(settings, "c", ignores_formatted=True).directories == []
    assert contents(tmp_path) == before


def test_new_disk_joins_the_cluster(tmp_path: Path) -> None:
    """With `ignores_formatted`, only the directories without an owner are formatted."""
    one, two = tmp_path / "one", tmp_path / "two"
    _format(_settings(one), "c")
    settings = _settings(one, two)
    assert _format(settings, "c", ignores_formatted=True).directories == [str(two)]
    assert run_broker(settings) == "c"


def test_lost_metadata_is_not_replaced_by_an_empty_tree(tmp_path: Path) -> None:
    """The topics of the other disk would be lost: the error says to restore the metadata."""
    one, two = tmp_path / "one", tmp_path / "two"
    settings = _settings(one, two)
    _format(settings, "c")
    run_broker(settings)
    lose_tree(one)
    (one / "meta.properties").unlink()
    before = contents(tmp_path)
    with pytest.raises(OttlaError, match="is missing from"):
        _format(settings, "c", ignores_formatted=True)
    assert contents(tmp_path) == before


def test_metadata_of_another_cluster_is_kept(tmp_path: Path) -> None:
    """`coordination.dir` may hold the tree of another cluster."""
    tree = str(tmp_path / "tree")
    _format(_settings(tmp_path / "one", coordination_dir=tree), "c")
    settings = _settings(tmp_path / "two", coordination_dir=tree)
    with pytest.raises(OttlaError, match="holds the metadata of the cluster c, not of d"):
        _format(settings, "d")
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("options", "cluster_id", "reason"),
    [
        ({}, "", "cannot be the id of a cluster"),
        ({}, "a\nb", "cannot be the id of a cluster"),
        ({"zookeeper_connect": "127.0.0.1:1"}, "c", "no directory needs to be formatted"),
        ({"process_roles": "broker"}, "c", "process.roles=broker expects"),
        ({"controller_quorum_voters": "1@a:1,2@b:1"}, "c", "names the controllers 1, 2"),
    ],
)
def test_what_could_not_start_is_not_formatted(
    tmp_path: Path, options: dict[str, str], cluster_id: str, reason: str
) -> None:
    """A node of a larger quorum, a broker on ZooKeeper, and an id that cannot be written."""
    with pytest.raises(OttlaError, match=reason):
        _format(_settings(tmp_path / "data", **options), cluster_id)
    assert list(tmp_path.iterdir()) == []
