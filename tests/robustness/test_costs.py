"""The worst legal requests of every API: the event loop runs on, and responses stay small.

The bounds come from the table of costs. What counts is the processor time of the loop's own
thread between two of its iterations, so that other processes do not matter.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from bench import servers
from bench.observed import ObservedBroker, Reading
from bench.pauses import Line, ask_coordinator
from ottla.base.errors import ErrorCode
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.server.transport.apis import ROWS, ApiRow
from ottla.server.transport.costs import COSTS, UNLIMITED
from ottla.wire import headers
from ottla.wire.api_keys import ApiKey
from ottla.wire.fields import Message
from ottla.wire.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.robustness import worst

PAUSE_MS_MAX = 100.0
SECONDS_MAX = 60.0
RESPONSE_MIB_MAX = 64
GROWTH_MIB_MAX = 200
# Denials are logged at a bounded rate.
LINES_MAX = 200
# Their resources are not topics, groups or transactions with a forbidden name.
_ALLOWED = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
}
# Other processes slow down this one's processor, too: of three measurements the best one counts.
ATTEMPTS = 3
TOPICS, PARTITIONS = 300, 3
MIB = 1024 * 1024
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "5",
}
GUARDED = SETTINGS | {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_READ, _DENY, _PREFIXED, _VERSION = 2, 2, 4, 3
_KINDS = (2, 3, 5)
Bench = tuple[ObservedBroker, worst.World]
# The others need the topics that DeleteTopics deletes.
APIS = sorted(
    (row for row in ROWS if COSTS[ApiKey(int(row.handler.API))].large_bytes != UNLIMITED),
    key=lambda row: row.handler.API == ApiKey.DELETE_TOPICS,
)


class Outcome(NamedTuple):
    """The effects of one request on a broker."""

    reading: Reading
    seconds: float
    response_bytes: int
    growth_mib: float
    lines_count: int


def _fill(broker: ObservedBroker) -> worst.World:
    """Create topics, and a group coordinator."""
    with Brokers(f"127.0.0.1:{broker.port}", timeout_s=60) as admin:
        # The topic in which `ask_coordinator` produces.
        topics.create_topic(admin, "t", partitions=1)
    _create_topics(broker)
    found = servers.ask(broker.port, MetadataRequest(topics=None), MetadataResponse, 12)
    ids = {topic.name: topic.topic_id for topic in found.topics}
    ask_coordinator(broker.port, "group")
    names = [worst.TOPIC.format(number) for number in range(TOPICS)]
    return worst.World(1, TOPICS, PARTITIONS, tuple(ids[name] for name in names))


def _create_topics(broker: ObservedBroker) -> None:
    """Create the topics that do not exist."""
    names = [worst.TOPIC.format(number) for number in range(TOPICS)]
    created = servers.ask(
        broker.port,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
                for name in names
            ],
            timeout_ms=60_000,
        ),
        CreateTopicsResponse,
        7,
    )
    codes = {topic.error_code for topic in created.topics}
    assert codes <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


@pytest.fixture(scope="module")
def usual() -> Iterator[Bench]:
    """Return a broker without an authorizer, and its topics."""
    with ObservedBroker(SETTINGS) as broker:
        yield broker, _fill(broker)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Bench]:
    """Return a broker with an authorizer, which denies topics, groups and transactions by prefix."""
    with ObservedBroker(GUARDED) as broker:
        world = _fill(broker)
        rules = [
            AclCreation(
                resource_type=kind,
                resource_name="forbidden",
                resource_pattern_type=_PREFIXED,
                principal="User:*",
                host="*",
                operation=_READ,
                permission_type=_DENY,
            )
            for kind in _KINDS
        ]
        servers.ask(broker.port, CreateAclsRequest(creations=rules), CreateAclsResponse, _VERSION)
        yield broker, world


def send(broker: ObservedBroker, message: Message, version: int) -> Outcome:
    """Send a request over a connection of its own; wait for its response."""
    body = headers.encode_request(message, version, 1, "x")
    before, lines = broker.take(), len(broker.lines())
    begin, line = time.monotonic(), Line(broker.port)
    try:
        line.send_bytes(len(body).to_bytes(4, "big") + body)
        response_bytes = len(line.receive_bytes())
    finally:
        line.close()
    seconds, after = time.monotonic() - begin, broker.take()
    growth = after.rss_mib - before.rss_mib
    return Outcome(after, seconds, response_bytes, growth, len(broker.lines()) - lines)


def pause_ms(outcome: Outcome) -> float:
    """Return how long the loop was busy; the lag is less if the clock of the thread is coarse."""
    return min(outcome.reading.cpu_ms, outcome.reading.lag_ms)


def check(broker: ObservedBroker, message: Message, version: int, name: str) -> Outcome:
    """Send a request that must not stop the loop for long."""
    outcomes: list[Outcome] = []
    for _ in range(ATTEMPTS):
        outcome = send(broker, message, version)
        outcomes.append(outcome)
        assert outcome.seconds < SECONDS_MAX, name
        assert outcome.response_bytes < RESPONSE_MIB_MAX * MIB, name
        assert outcome.growth_mib < GROWTH_MIB_MAX, name
        if pause_ms(outcome) <= PAUSE_MS_MAX:
            return outcome
    raise AssertionError(
        f"{name}: the loop paused for {min(map(pause_ms, outcomes)):.0f} ms\n"
        f"{outcomes[-1].reading.stack}"
    )


def _name(row: ApiRow) -> str:
    return ApiKey(int(row.handler.API)).name


@pytest.mark.slow
@pytest.mark.parametrize("row", APIS, ids=_name)
def test_the_worst_requests(usual: Bench, row: ApiRow) -> None:
    """As many elements as the table allows do not stop the loop, or flood anything."""
    broker, world = usual
    for request in worst.largest_requests(world, row):
        outcome = check(broker, request.message, request.version, request.name)
        assert pause_ms(outcome) <= PAUSE_MS_MAX


@pytest.mark.slow
@pytest.mark.nightly("tests/robustness/test_costs.py::test_the_worst_requests")
@pytest.mark.parametrize("row", APIS, ids=_name)
def test_the_worst_requests_with_all_names(usual: Bench, row: ApiRow) -> None:
    """Names that are missing or repeated cost no more, and neither do requests in one piece."""
    broker, world = usual
    for request in worst.worst_requests(world, row):
        outcome = check(broker, request.message, request.version, request.name)
        # Each change that succeeds has lines in the logs.
        if not row.is_administrative:
            assert outcome.lines_count <= LINES_MAX, request.name


@pytest.mark.slow
@pytest.mark.nightly("tests/robustness/test_costs.py::test_the_worst_requests")
@pytest.mark.parametrize("row", APIS, ids=_name)
def test_the_worst_requests_that_are_denied(guarded: Bench, row: ApiRow) -> None:
    """Denials cost no more, and their log lines are few."""
    broker, world = guarded
    for request in worst.worst_requests(world, row, names=("forbidden",)):
        outcome = check(broker, request.message, request.version, request.name)
        if row.handler.API not in _ALLOWED:
            assert outcome.lines_count <= LINES_MAX, request.name


def configs(kind: int, *names: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name) for name in names
        ],
        include_synonyms=True,
        include_documentation=True,
    )


def creations(count: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=f"new-{number}", num_partitions=1, replication_factor=1)
            for number in range(count)
        ],
        validate_only=True,
    )


def named(pattern: str, count: int) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=pattern.format(number)) for number in range(count)],
        allow_auto_topic_creation=False,
    )


FOUND: dict[str, Callable[[], tuple[Message, int]]] = {
    "one topic is described 20 000 times": lambda: (configs(2, *["topic-0"] * 20_000), 4),
    "the broker is described 20 000 times": lambda: (configs(4, *["1"] * 20_000), 4),
    "20 000 topics are created, only on trial": lambda: (creations(20_000), 7),
    "25 000 topics without a right": lambda: (named(worst.FORBIDDEN, 25_000), 12),
}


@pytest.mark.parametrize("what", FOUND)
def test_requests_of_the_review(guarded: Bench, what: str) -> None:
    """They stopped the broker for seconds, and took hundreds of mebibytes or log lines."""
    broker, _ = guarded
    message, version = FOUND[what]()
    outcome = check(broker, message, version, what)
    assert outcome.lines_count <= LINES_MAX
    assert outcome.response_bytes < 8 * MIB


def test_more_names_than_allowed(guarded: Bench) -> None:
    """The broker closes the connection before it authorizes any of them."""
    broker, _ = guarded
    lines = len(broker.lines())
    broker.take()
    with pytest.raises(AssertionError, match="closed"):
        send(broker, named(worst.FORBIDDEN, 100_000), 12)
    assert min(broker.take()[:2]) <= PAUSE_MS_MAX
    assert len(broker.lines()) - lines <= 3


def test_usual_clients_never_meet_the_bounds(usual: Bench) -> None:
    """Ten thousand topics in one request are described, named, and created on trial."""
    broker, _ = usual
    _create_topics(broker)
    names = [worst.TOPIC.format(number) for number in range(10_000)]
    described: Any = servers.ask(broker.port, configs(2, *names), DescribeConfigsResponse, 4)
    assert [row.resource_name for row in described.results] == names
    assert sum(not row.error_code and len(row.configs) > 20 for row in described.results) == TOPICS
    found: Any = servers.ask(broker.port, named(worst.TOPIC, 10_000), MetadataResponse, 12)
    assert {topic.name for topic in found.topics} == set(names)
    assert sum(len(topic.partitions) for topic in found.topics) == TOPICS * PARTITIONS
    created: Any = servers.ask(broker.port, creations(10_000), CreateTopicsResponse, 7)
    assert len(created.topics) == 10_000
    assert not any(topic.error_code for topic in created.topics)


def test_many_large_requests_at_once(usual: Bench) -> None:
    """They take turns: together they stop the loop for no longer than one of them."""
    broker, _ = usual
    requests: list[tuple[Message, int]] = [
        (configs(2, *(worst.TOPIC.format(number) for number in range(2000))), 4),
        (named(worst.MISSING, 20_000), 12),
        (creations(5000), 7),
    ]
    pauses = []
    for _ in range(ATTEMPTS):
        broker.take()
        threads = [
            threading.Thread(target=send_quietly, args=(broker.port, *requests[number % 3]))
            for number in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        reading = broker.take()
        pauses.append(min(reading.cpu_ms, reading.lag_ms))
        if pauses[-1] <= PAUSE_MS_MAX:
            break
    assert min(pauses) <= PAUSE_MS_MAX, f"the loop paused for {pauses} ms"


def send_quietly(port: int, message: Message, version: int) -> None:
    """Send a request, and wait for its response."""
    body = headers.encode_request(message, version, 1, "x")
    line = Line(port)
    line.send_bytes(len(body).to_bytes(4, "big") + body)
    line.receive_bytes()
    line.close()
