"""SaslAuthenticate: a broker proves its identity, and then may fetch as a follower."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import (
    MECHANISM,
    NUMBER_BYTES,
    KeysByGeneration,
    ProofError,
    ProofOfBroker,
)
from ottla.server.authentication.identity import CertificateUser, user_of
from ottla.server.handlers import fetch, sasl_authenticate, sasl_handshake
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.handlers.logs import NODE, OTHER, LogsBroker, values

VERSIONS = range(sasl_authenticate.MIN_VERSION, sasl_authenticate.MAX_VERSION + 1)
NUMBER = b"n" * NUMBER_BYTES


def step(context: Any, message: bytes) -> Any:
    return sasl_authenticate.handle(context, SaslAuthenticateRequest(auth_bytes=message))


def introduce(context: Any, keys: KeysByGeneration, broker_id: int, binding: bytes = b"") -> Any:
    """Run the exchange; return the response to its last step, which comes later if it fails."""
    sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=MECHANISM))
    proof = ProofOfBroker(keys, broker_id, NUMBER, binding)
    reply = step(context, proof.first())
    return step(context, proof.second(reply.auth_bytes))


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_request_without_a_handshake_is_refused(broker: LogsBroker, version: int) -> None:
    """There is no exchange that it could continue."""
    response = await broker.ask(
        sasl_authenticate, SaslAuthenticateRequest(auth_bytes=b"x"), version
    )
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message


async def test_a_wrong_proof_ends_the_connection(
    broker: LogsBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """The response comes late, is logged, and then the peer is disconnected: keys cannot be tried."""
    closed: list[str] = []
    context = broker.context(sasl_authenticate, 2)
    context.connection.close = closed.append
    sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=MECHANISM))
    step(context, ProofOfBroker(broker.secret.valid_keys(), OTHER, NUMBER).first())
    later = step(context, b"x" * 32)
    assert asyncio.isfuture(later)
    assert not context.is_from_broker(OTHER)
    assert (await later).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert f"broker not accepted: the proof of broker {OTHER} is wrong" in caplog.text
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert closed == ["the client is not authenticated"]


async def test_claim_to_be_a_broker_keeps_the_user_of_a_certificate(broker: LogsBroker) -> None:
    """The user counts before the proof and after a wrong one, also for its quotas."""
    context = broker.context(sasl_authenticate, 2)
    context.connection.identity = CertificateUser("CN=ann")
    context.connection.close = lambda reason: None
    proof = ProofOfBroker(broker.secret.valid_keys(), OTHER, NUMBER)
    for _ in range(2):
        sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=MECHANISM))
        assert user_of(context.connection) == "CN=ann"
        step(context, proof.first())
    assert (await step(context, b"x" * 32)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert context.connection.identity == CertificateUser("CN=ann")
    assert introduce(context, broker.secret.valid_keys(), OTHER).error_code == 0
    assert context.is_from_broker(OTHER)
    assert user_of(context.connection) == "ANONYMOUS"


async def test_a_proven_broker_fetches_as_that_follower_only(broker: LogsBroker) -> None:
    """It gets uncommitted records, and its position moves the high watermark (CVE-2018-1288)."""
    topic = broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    context = broker.context(fetch, 17)
    assert introduce(context, broker.secret.valid_keys(), OTHER).error_code == 0

    def request(replica: int, offset: int) -> FetchRequest:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        topics = [FetchTopic(topic_id=topic.topic_id, partitions=[partition])]
        state = ReplicaState(replica_id=replica)
        return FetchRequest(replica_state=state, max_wait_ms=0, min_bytes=1, topics=topics)

    response: Any = fetch.handle(context, request(OTHER, 0))
    assert values(response.responses[0].partitions[0].records) == [b"a"]
    assert broker.partition("t").high_watermark == 0
    fetch.handle(context, request(OTHER, 1))
    assert broker.partition("t").high_watermark == 1
    refused: Any = fetch.handle(context, request(3, 1))
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_proof_is_bound_to_the_tls_connection(broker: LogsBroker) -> None:
    """One that another program passes on, from its connection to ours, is refused."""
    context = broker.context(sasl_authenticate, 2)
    context.connection.close = lambda reason: None
    context.connection.channel_binding = b"handshake"
    with pytest.raises(ProofError, match="the peer does not know the secret"):
        introduce(context, broker.secret.valid_keys(), OTHER, b"another handshake")
    assert introduce(context, broker.secret.valid_keys(), OTHER, b"handshake").error_code == 0
    assert context.is_from_broker(OTHER)
