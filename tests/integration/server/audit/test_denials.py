"""Denials and failed logins: who was refused, by which rule, in a bounded number of lines."""

from typing import Any

import pytest

from ottla.server.audit.limits import ADDRESS_BURST, REPEAT_SECONDS
from ottla.testing.sim.client import SimConnection
from ottla.wire.messages import fetch, leader_and_isr, metadata, produce
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.records.records import Record, encode_batch
from tests.integration.server.audit.audited_broker import CLIENT_ID, AuditedBroker, ask, run
from tests.integration.server.audit.requests import CASES, topic

_READ, _WRITE = 3, 4


async def write(connection: SimConnection, name: str = "t") -> int:
    """Produce a record; return the error code."""
    rows = produce.PartitionProduceData(records=encode_batch([Record(b"k", b"v")]))
    request = produce.ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[produce.TopicProduceData(name=name, partition_data=[rows])],
    )
    response = await ask(connection, request, 9)
    return int(response.responses[0].partition_responses[0].error_code)


def denials(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of denials without their times."""
    rows = [{name: line[name] for name in line if name != "time"} for line in lines]
    return [row for row in rows if row["event"] == "denial"]


def test_denied_produce_has_one_line_and_a_count() -> None:
    """The client asks again and again; the line has the sender, and the rule that decided."""

    async def scenario(broker: AuditedBroker) -> None:
        root, ann = await broker.log_in("root"), await broker.log_in("ann")
        await topic(root)
        await broker.allow(root, _READ, "t")
        for _ in range(10):
            assert await write(ann) == 29
        await broker.machine.clock.sleep(REPEAT_SECONDS + 1)
        assert await write(ann) == 29

    sender = {"broker": 1, "principal": "User:ann", "address": "client"}
    question = {
        "listener": "SASL_PLAINTEXT",
        "client_id": CLIENT_ID,
        "api": "PRODUCE",
        "operation": "WRITE",
        "resource_type": "TOPIC",
        "resource": "t",
        "rule": "no ACL that allows it",
    }
    denial = {"event": "denial", **sender, "result": "denied"}
    assert denials(run(scenario)) == [
        denial | question,
        denial | {"suppressed": 9},
        denial | question,
    ]


def test_denied_fetch_is_written() -> None:
    """The check is where the partition is read."""

    async def scenario(broker: AuditedBroker) -> None:
        root, ann = await broker.log_in("root"), await broker.log_in("ann")
        await topic(root)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            topics=[fetch.FetchTopic(topic="t", partitions=[fetch.FetchPartition()])],
        )
        await ask(ann, request, 11)

    (line,) = denials(run(scenario))
    assert (line["api"], line["operation"], line["resource"]) == ("FETCH", "READ", "t")
    assert line["rule"] == "no ACL for the resource"


@pytest.mark.parametrize("key", CASES, ids=lambda key: key.name)
def test_refused_administrative_request_is_a_denial_and_no_change(key: Any) -> None:
    """Nothing is written for it besides the denial, which names the missing right."""
    case = CASES[key]

    async def scenario(broker: AuditedBroker) -> None:
        root, ann = await broker.log_in("root"), await broker.log_in("ann")
        await case.prepare(root)
        await ask(ann, case.request, case.version)

    lines = [line for line in run(scenario) if line["principal"] == "User:ann"]
    assert {line["event"] for line in lines} == {"denial"}
    assert {line["api"] for line in lines} == {key.name}
    assert len(lines) == (2 if key.name == "CREATE_TOPICS" else 1)


def test_right_that_is_not_needed_is_no_denial() -> None:
    """An administrator may end a transaction without the right of brokers."""
    case = next(case for key, case in CASES.items() if key.name == "WRITE_TXN_MARKERS")

    async def scenario(broker: AuditedBroker) -> None:
        root = await broker.log_in("root")
        await topic(root)
        await ask(root, case.request, case.version)

    assert denials(run(scenario)) == []


def test_topics_that_a_list_hides_are_no_denials() -> None:
    """The client did not name them."""

    async def scenario(broker: AuditedBroker) -> None:
        root, ann = await broker.log_in("root"), await broker.log_in("ann")
        await topic(root)
        response = await ask(ann, metadata.MetadataRequest(topics=None), 9)
        assert response.topics == []

    assert denials(run(scenario)) == []


def test_request_of_a_controller_without_proof_is_a_denial() -> None:
    """Also without an authorizer: a client claims to be a broker."""

    async def scenario(broker: AuditedBroker) -> None:
        ann = await broker.log_in("ann")
        await ask(ann, leader_and_isr.LeaderAndIsrRequest(controller_id=1), 7)

    (line,) = denials(run(scenario, authorizer_class_name=""))
    assert (line["api"], line["operation"]) == ("LEADER_AND_ISR", "CLUSTER_ACTION")
    assert line["rule"] == "the sender has not proven to be the broker"


def test_client_that_invents_names_fills_no_log() -> None:
    """The first lines of an address are written at once, then one per second; others are counted."""

    async def scenario(broker: AuditedBroker) -> None:
        ann = await broker.log_in("ann")
        for number in range(300):
            assert await write(ann, f"invented{number}") == 29

    lines = denials(run(scenario))
    assert ADDRESS_BURST <= len(lines) < ADDRESS_BURST + 10
    assert sum(line.get("suppressed", 1) for line in lines) == 300


def failed_logins(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the principals, mechanisms and reasons of failed logins."""
    return [
        (line["principal"], line["details"]["mechanism"], line["details"]["reason"])
        for line in lines
        if line["event"] == "failed login"
    ]


def test_failed_login_has_the_name_that_the_client_claims() -> None:
    """A name that cannot be an own line, because control characters are escaped."""
    name = 'eve\r\n{"event":"change"}'

    async def scenario(broker: AuditedBroker) -> None:
        for user in ("ann", name):
            with pytest.raises(ConnectionRefusedError):
                await broker.log_in(user, "wrong")

    reason = "Authentication failed: Invalid username or password"
    assert failed_logins(run(scenario)) == [
        ("User:ann", "PLAIN", reason),
        (f"User:{name}", "PLAIN", reason),
    ]


def test_failed_login_of_old_clients_is_written() -> None:
    """Their messages have no header, so the gate refuses them."""

    async def scenario(broker: AuditedBroker) -> None:
        connection = await broker.connect()
        await connection.request(SaslHandshakeRequest(mechanism="PLAIN"), 0, SaslHandshakeResponse)
        connection.send_frame(b"\0ann\0wrong")
        await broker.machine.clock.sleep(1)
        assert connection.is_lost

    ((principal, mechanism, _),) = failed_logins(run(scenario))
    assert (principal, mechanism) == ("User:ann", "PLAIN")


def test_unknown_mechanism_and_false_brokers_are_failed_logins() -> None:
    """A client that cannot begin an exchange, and one that claims to be a broker."""

    async def scenario(broker: AuditedBroker) -> None:
        first = await broker.connect()
        await first.request(SaslHandshakeRequest(mechanism="GSSAPI"), 1, SaslHandshakeResponse)
        second = await broker.connect()
        handshake = SaslHandshakeRequest(mechanism="OTTLA-BROKER")
        await second.request(handshake, 1, SaslHandshakeResponse)
        request = SaslAuthenticateRequest(auth_bytes=b"wrong")
        await second.request(request, 2, SaslAuthenticateResponse)

    assert [row[:2] for row in failed_logins(run(scenario))] == [
        ("User:ANONYMOUS", "GSSAPI"),
        ("User:ANONYMOUS", "OTTLA-BROKER"),
    ]
