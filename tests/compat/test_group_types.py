"""`ottla group` with the groups of Apache Kafka that Ottla's broker does not have."""

import json
from typing import Any

import pytest

from ottla.client import AdminClient
from ottla.tools.main import run
from tests.compat import java
from tests.compat.heartbeats import LEAVING, join, share_heartbeat, streams_heartbeat

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,  # Apache Kafka takes seconds to start.
    pytest.mark.needs("java"),
]


@pytest.fixture(scope="module")
def bootstrap() -> str:
    """Apache Kafka 4.3.0, with groups of all types."""
    node = java.shared_node("4.3.0", java.GROUPS_OF_ALL_TYPES)
    with AdminClient(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topic("t", partitions=2)
        # The first request for a coordinator creates the topic in which it stores groups.
        admin.list_group_offsets("k")
    return node.bootstrap


def _run(
    bootstrap: str, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[Any], str]:
    """Run a verb of `ottla group`; return its exit code, its JSON and its errors."""
    code = run(["group", *words, "-b", bootstrap, "--output", "json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else [], printed.err


def test_a_streams_group_has_the_verbs_of_consumer_groups(
    bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its offsets are moved once its members have left."""
    join(lambda epoch: streams_heartbeat(bootstrap, "k", epoch))
    _, rows, _ = _run(bootstrap, capsys, "list")
    assert ("k", "streams") in [(row["group"], row["type"]) for row in rows]
    _, rows, _ = _run(bootstrap, capsys, "describe", "k")
    assert [(row["topic"], row["partition"], row["client_id"]) for row in rows] == [
        ("t", 0, "client"),
        ("t", 1, "client"),
    ]
    reset = ("reset", "k", "--to", "start", "--topic", "t", "--execute")
    code, _, errors = _run(bootstrap, capsys, *reset)
    assert code != 0
    assert "Group 'k' is active" in errors
    streams_heartbeat(bootstrap, "k", LEAVING)
    assert _run(bootstrap, capsys, *reset)[0] == 0
    _, rows, _ = _run(bootstrap, capsys, "describe", "k")
    assert [row["current_offset"] for row in rows] == [0, 0]
    assert _run(bootstrap, capsys, "delete", "k", "--yes")[0] == 0
    assert _run(bootstrap, capsys, "describe", "k")[0] != 0


def test_a_share_group_is_listed_and_deleted(
    bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verbs for committed offsets name the script for share groups, and change nothing."""
    join(lambda epoch: share_heartbeat(bootstrap, "s", epoch))
    share_heartbeat(bootstrap, "s", LEAVING)
    _, rows, _ = _run(bootstrap, capsys, "list")
    assert ("s", "share") in [(row["group"], row["type"]) for row in rows]
    for words in (
        ("describe", "s"),
        ("reset", "s", "--to-earliest", "--topic", "t", "--execute"),
        ("reset", "s", "--to", "start", "--topic", "t", "--execute"),
    ):
        code, rows, errors = _run(bootstrap, capsys, *words)
        assert (code, rows) == (1, []), words
        assert "is a share group, which commits no offsets: use `kafka-share-groups" in errors
    assert _run(bootstrap, capsys, "delete", "s", "--yes")[0] == 0
    code, _, errors = _run(bootstrap, capsys, "delete", "s", "--yes")
    assert code == 1
    assert "There is no group 's'" in errors
