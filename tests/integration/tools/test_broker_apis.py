"""`ottla broker apis`: the versions of APIs by broker."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.testing import Cluster
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from tests.unit.client.conftest import ScriptedBroker


def test_versions_of_apis_are_listed(run: Any) -> None:
    """Each API has its versions, and the highest one that the client shares."""
    rows = {row["api"]: row for row in run("broker", "apis", "--output", "json").json}
    assert rows["Metadata"]["broker"] == 1
    assert rows["Metadata"]["key"] == 3
    assert rows["Metadata"]["min"] <= rows["Metadata"]["usable"] <= rows["Metadata"]["max"]
    # Ottla's broker has no share groups.
    shares = rows["ShareGroupDescribe"]
    assert (shares["min"], shares["usable"]) == (None, None)
    table = {row[2]: row for row in run("broker", "apis", "--broker", "1").rows}
    name = "ShareGroupDescribe"
    assert table[name] == ["1", "77", name, "-", "-", "-"]


def test_brokers_are_selected(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--broker shows the APIs of this broker only."""
    with Cluster(brokers=2) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        everything = run("broker", "apis", "--output", "json").json
        assert {row["broker"] for row in everything} == {1, 2}
        selected = run("broker", "apis", "--broker", "2", "--output", "json").json
        assert {row["broker"] for row in selected} == {2}


@pytest.mark.parametrize(
    ("noun", "verb", "number", "code", "sentence"),
    [
        ("broker", "apis", "7", 1, "Broker 7 is not running; running brokers: 1"),
        ("broker", "apis", "-1", 2, "-1 is not in the range x>=0"),
        ("cluster", "features", "7", 1, "Broker 7 is not running; running brokers: 1"),
        ("cluster", "features", "x", 2, "'x' is not a whole number"),
    ],
)
def test_unknown_broker_is_a_sentence(
    run: Any, noun: str, verb: str, number: str, code: int, sentence: str
) -> None:
    """The sentence lists the running brokers."""
    done = run(noun, verb, "--broker", number)
    assert (done.code, done.out) == (code, b"")
    assert sentence in done.errors


def test_api_that_is_too_new_is_not_usable(
    run: Any, new_broker: Callable[..., ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker without a common version, and APIs that this client does not know, are shown."""
    broker = new_broker(
        node_id=1, versions={18: (0, 4), 60: (0, 1), 3: (0, 12), 0: (99, 100), 999: (0, 1)}
    )
    address = broker.address
    broker.answers["DescribeCluster"] = lambda _: DescribeClusterResponse(
        brokers=[DescribeClusterBroker(broker_id=1, host=address.host, port=address.port)]
    )
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    rows = {row["key"]: row for row in run("broker", "apis", "--output", "json").json}
    assert (rows[0]["min"], rows[0]["max"], rows[0]["usable"]) == (99, 100, None)
    assert (rows[999]["api"], rows[999]["max"], rows[999]["usable"]) == ("UNKNOWN", 1, None)
    assert (rows[3]["api"], rows[3]["usable"]) == ("Metadata", 12)
