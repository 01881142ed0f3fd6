"""The lines of `kafka-broker-api-versions` are the same as Apache Kafka's NodeApiVersions prints."""

import pytest

from ottla.testing import Cluster
from ottla.tools.broker.api_ranges import KNOWN
from ottla_scripts import entry
from ottla_scripts.admin.api_versions import _lines

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("key", "versions", "line"),
    [
        (0, (0, 13), "Produce(0): 0 to 13 [usable: 13]"),
        (0, (3, 99), "Produce(0): 3 to 99 [usable: 13]"),
        (0, (4, 4), "Produce(0): 4 [usable: 4]"),
        (0, (0, 2), "Produce(0): 0 to 2 [unusable: node too old]"),
        (0, (14, 15), "Produce(0): 14 to 15 [unusable: node too new]"),
        # Removed in 4.0.
        (4, (5, 7), "LeaderAndIsr(4): 5 to 7 [unusable: node too new]"),
        (52, (0, 0), "Vote(52): 0 [usable: 0]"),
        (9999, (0, 1), "UNKNOWN(9999): 0 to 1"),
    ],
)
def test_line_has_the_versions_and_the_usable_one(
    key: int, versions: tuple[int, int], line: str
) -> None:
    """The highest version that both have is usable, unless one of them is too old."""
    assert f"\t{line}" in _lines({key: versions})


def test_apis_of_clients_are_listed_although_they_are_missing() -> None:
    """APIs between brokers are not."""
    lines = _lines({})
    assert lines == sorted(lines, key=lambda line: int(line.partition("(")[2].partition(")")[0]))
    assert "\tShareFetch(78): UNSUPPORTED" in lines
    assert len(lines) == sum(api.is_of_clients for api in KNOWN.values()) < len(KNOWN)


def test_broker_is_named_in_front_of_its_apis(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Address, id, rack, and a list in parentheses."""
    at = ottla_cluster.bootstrap
    assert entry.run("kafka-broker-api-versions", ["--bootstrap-server", at]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{at} (id: 1 rack: null isFenced: false) -> ("
    assert lines[1] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert (lines[-2][-1] != ",", lines[-1]) == (True, ")")
