"""`ottla topic search`: in the brokers, and by reading the topic; both find the same records."""

import json
from collections.abc import Iterator
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.base.search.language import parse_filter
from ottla.client.admin import configs
from ottla.operations.search import brokers as remote
from ottla.testing import Cluster
from ottla.tools.search import running
from tests.integration.tools.test_mirror import produce


@pytest.fixture(scope="module")
def searched() -> Iterator[Cluster]:
    """Return two brokers that serve /search, and a topic whose partitions both lead."""
    options = {"metrics.listener": "127.0.0.1:0", "search.enable": "true"}
    with Cluster(brokers=2, options=options) as cluster:
        cluster.create_topic("orders", partitions=4, config={"retention.ms": "-1"})
        for number in range(40):
            value = json.dumps({"id": number, "text": "refund" if number % 4 == 1 else "sale"})
            produce(
                cluster,
                "orders",
                [value.encode()],
                key=b"k%d" % number,
                partition=number % 4,
                timestamp=1_000_000_000 + number,
                headers=[("h", b"%d" % (number % 2))],
            )
        yield cluster


@pytest.fixture(params=["in the brokers", "by reading"])
def search(
    request: pytest.FixtureRequest, searched: Cluster, run: Any, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return a function that searches with a command line."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", searched.bootstrap)
    known = {number: searched.node(number).monitoring_address for number in searched.brokers}
    monkeypatch.setattr("ottla.tools.search.running.addresses", lambda brokers: known)
    extra = ["--local"] if request.param == "by reading" else []
    return lambda *command_line: run("topic", "search", *command_line, *extra)


def ids(done: Any) -> list[int]:
    """Return the ids of the found records, in order."""
    return sorted(json.loads(json.loads(line)["payload"])["id"] for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        (["--value", "refund"], list(range(1, 40, 4))),
        (["--key", "k7"], [7]),
        (["--key-regex", "^k3[0-2]$"], [30, 31, 32]),
        (["--where", "$.id >= 38"], [38, 39]),
        (["--where", 'key =~ "^K3[01]$" ignore-case and not $.text == "refund"'], [30, 31]),
        (["--where", '$.text == "refund"', "--header", "h=1", "-p", "1", "-o", "-2"], [33, 37]),
        (["--value", "REFUND", "-i", "-c", "3"], [1, 5, 9]),
        (["-o", "@1000000037"], [37, 38, 39]),
        (["-o", "0", "-o", "1", "--read-committed"], [0, 1, 2, 3]),
    ],
)
def test_search_finds_matching_records(
    search: Any, command_line: list[str], expected: list[int]
) -> None:
    """The result does not depend on where the search runs; the exit code is 0."""
    done = search("orders", "--output", "json", *command_line)
    assert (done.code, ids(done)) == (0, expected), done.errors
    assert json.loads(done.errors)["matches"] == len(expected)


def test_no_match_has_exit_code_1(search: Any) -> None:
    """As with grep; a sentence has the number of matches."""
    done = search("orders", "--value", "absent")
    assert (done.code, done.out) == (1, b"")
    assert done.errors.startswith("0 matches")


def test_format_of_matches(search: Any) -> None:
    """By default place, key and value; -f is the same as in `ottla consume`."""
    done = search("orders", "--key", "k7")
    assert done.out == b'orders[3] 1: k7 {"id": 7, "text": "sale"}\n'
    assert search("orders", "--key", "k7", "-f", "%o\\n").out == b"1\n"


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["orders", "--where", "x"], "does not begin with $"),
        (["orders", "--value-regex", "("], "not a valid regular expression"),
        (["orders", "-o", "soon"], "is not a position"),
        (["orders", "-o", "stored"], "name an offset or a time"),
        (["orders", "-p", "9"], "has no partition 9"),
        (["missing"], "There is no topic 'missing'"),
        (["orders", "--http", "x"], "HOST:PORT"),
        (["orders", "-f", "%q"], "%q is not a format token"),
    ],
)
def test_wrong_search_is_a_sentence(
    searched: Cluster,
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
    command_line: list[str],
    sentence: str,
) -> None:
    """Nothing is searched, and nothing is printed on standard output."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", searched.bootstrap)
    done = run("topic", "search", *command_line)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors


def test_http_port_that_does_not_answer(searched: Cluster, run: Any, monkeypatch: Any) -> None:
    """The sentence names both remedies."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", searched.bootstrap)
    done = run("topic", "search", "orders", "--http", searched.bootstrap.split(",")[0])
    assert done.code == 1
    assert "--http, or use --local" in done.errors


def test_addresses_come_from_the_brokers(searched: Cluster, monkeypatch: Any) -> None:
    """A listener on every address is reached at the broker's own host; others are named as they
    are.
    """
    entries = {
        "1": {"metrics.listener": "0.0.0.0:9100", "search.enable": "true"},
        "2": {"metrics.listener": "10.0.0.2:9100", "search.enable": "true"},
    }

    class Entry:
        def __init__(self, name: str, value: str) -> None:
            self.name, self.value = name, value

    def describe(brokers: Any, resource: Any, *, names: Any) -> list[Entry]:
        return [Entry(*pair) for pair in entries[resource.name].items()]

    monkeypatch.setattr(configs, "describe_config", describe)
    with searched.admin() as brokers:
        assert running.addresses(brokers) == {1: ("127.0.0.1", 9100), 2: ("10.0.0.2", 9100)}
        entries["2"]["search.enable"] = "false"
        assert list(running.addresses(brokers)) == [1]


def test_search_follows_a_leader_that_moves(searched: Cluster, monkeypatch: Any) -> None:
    """Partitions that a broker does not lead any more are searched in the next round."""
    monkeypatch.setattr(remote, "time", SimpleNamespace(sleep=lambda _: None, monotonic=monotonic))
    known = {number: searched.node(number).monitoring_address for number in searched.brokers}
    numbers: list[int] = []
    search = remote.Search(
        topic="orders",
        ranges=dict.fromkeys(range(4), (0, 10)),
        conditions=parse_filter('value contains "refund"'),
    )

    class Stop:
        requested = False

    with searched.admin() as brokers:
        runner = remote.RemoteSearch(brokers, known, search)
        actual = remote.RemoteSearch._leaders
        rounds: list[int] = []

        def leaders(self: remote.RemoteSearch) -> dict[int, int]:
            rounds.append(len(rounds))
            true = actual(self)
            return (
                {number: 3 - leader for number, leader in true.items()}
                if len(rounds) == 1
                else true
            )

        monkeypatch.setattr(remote.RemoteSearch, "_leaders", leaders)
        result = runner.run(
            lambda record: numbers.append(record.offset), lambda count: None, Stop()
        )  # type: ignore[arg-type]
    assert (result.problems, len(numbers), len(rounds)) == ([], 10, 2)
