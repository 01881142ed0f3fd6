"""Requests that only brokers send, from senders that have proven to be one and from others."""

from collections.abc import AsyncIterator
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.tasks import Tasks
from ottla.security.acls import AclBinding, AclOperation, ResourcePattern, ResourceType
from ottla.security.authorization import Rules
from ottla.security.broker_proof import ProofToPeer
from ottla.server.authentication.identity import CertificateUser
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.transport.apis import ROWS, ApiRow
from ottla.server.transport.brokers_only import is_for_brokers
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.unit.server.authorization.conftest import Stores, entry
from tests.unit.server.transport.test_dispatch import Desk, proven_broker

# The first version that clients must not send; a follower proves its identity in each fetch.
FIRST_VERSIONS = {
    ApiKey.LEADER_AND_ISR: 0,
    ApiKey.STOP_REPLICA: 0,
    ApiKey.UPDATE_METADATA: 0,
    ApiKey.CONTROLLED_SHUTDOWN: 0,
    ApiKey.ADD_PARTITIONS_TO_TXN: 4,
    ApiKey.WRITE_TXN_MARKERS: 0,
    ApiKey.ALTER_PARTITION: 0,
    ApiKey.ALLOCATE_PRODUCER_IDS: 0,
}
SENT = [
    (row.handler.API, version)
    for row in ROWS
    for version in range(row.handler.MIN_VERSION, row.handler.MAX_VERSION + 1)
    if is_for_brokers(row, version, is_authorized=False)
]
CLUSTER = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")


class Proofs(Desk):
    """A dispatcher with one API, whose handler notes its calls."""

    def __init__(self, tasks: Tasks, key: ApiKey, secret: bytes | None = b"s" * 32) -> None:
        self.calls = 0
        self.api = APIS[key]
        row = next(row for row in ROWS if key == row.handler.API)
        module = ModuleType("handler")
        vars(module).update(vars(row.handler), handle=self.handle)
        super().__init__(tasks, cast(ApiRow, replace(row, handler=module)))
        cast(Any, self.broker).secret = secret
        cast(Any, self.broker).brokers_prove = secret is not None

    def handle(self, _context: Any, _request: Any) -> Any:
        self.calls += 1
        return self.api.response()

    def request(self, version: int, identity: object, message: Any = None) -> Any:
        """Send a request; return the response."""
        self.wire.connection.identity = identity
        self.send(self.api.request() if message is None else message, version)
        return self.answers(self.api.response, version)[-1][1]


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    """Return tasks that end with the test."""
    running = Tasks()
    yield running
    await running.close()


def test_every_request_among_brokers_needs_the_proof() -> None:
    """A new API among brokers has to be listed here, and declare that it needs the proof."""
    declared = {row.handler.API: row.proof_since for row in ROWS if row.needs_proof}
    assert declared == FIRST_VERSIONS
    assert {row.handler.API for row in ROWS if row.is_among_brokers} <= declared.keys()


@pytest.mark.parametrize(("key", "version"), SENT)
async def test_client_is_refused_without_an_authorizer(
    tasks: Tasks, key: ApiKey, version: int
) -> None:
    """An authenticated client, and one that only claims to be a broker."""
    desk = Proofs(tasks, key)
    claim = ProofToPeer(b"s" * 32, b"n" * 16)
    for identity in (None, CertificateUser("ann"), claim):
        response = desk.request(version, identity)
        if key is not ApiKey.WRITE_TXN_MARKERS:
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert desk.calls == 0
    desk.request(version, proven_broker())
    assert desk.calls == 1


@pytest.mark.parametrize(("key", "version"), SENT)
async def test_brokers_without_a_secret_prove_nothing(
    tasks: Tasks, key: ApiKey, version: int
) -> None:
    """With inter.broker.authentication=none the brokers may be Apache Kafka's."""
    desk = Proofs(tasks, key, secret=None)
    desk.request(version, None)
    assert desk.calls == 1


@pytest.mark.parametrize("version", range(4))
async def test_client_adds_partitions_to_one_transaction(tasks: Tasks, version: int) -> None:
    """The versions of clients need no proof."""
    desk = Proofs(tasks, ApiKey.ADD_PARTITIONS_TO_TXN)
    desk.request(version, None)
    assert desk.calls == 1


async def test_refused_markers_have_the_error_of_each_partition(tasks: Tasks) -> None:
    """The response has no error of its own."""
    desk = Proofs(tasks, ApiKey.WRITE_TXN_MARKERS)
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1])
    message = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=[topic])])
    (marker,) = desk.request(1, None, message).markers
    assert marker.producer_id == 7
    assert [row.error_code for row in marker.topics[0].partitions] == [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ] * 2
    assert desk.calls == 0


@pytest.mark.parametrize("operation", [AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
async def test_administrator_writes_markers(tasks: Tasks, operation: AclOperation) -> None:
    """An authorizer knows who may end a transaction that hangs (KIP-664)."""
    stores = Stores()
    authorizer = Authorizer(Rules(), await stores.store())
    desk = Proofs(tasks, ApiKey.WRITE_TXN_MARKERS)
    desk.dispatcher.authorize_by(authorizer)
    desk.request(1, CertificateUser("ann"))
    assert desk.calls == 0
    await authorizer.create([AclBinding(CLUSTER, entry(operation=operation))])
    desk.request(1, CertificateUser("ann"))
    assert desk.calls == 1
    desk.request(1, CertificateUser("ben"))
    assert desk.calls == 1
    await stores.tasks.close()
    await stores.tree.close()


async def test_right_does_not_replace_the_proof(tasks: Tasks) -> None:
    """Only a broker of the cluster sends requests that no administrator needs."""
    stores = Stores()
    authorizer = Authorizer(Rules(), await stores.store())
    await authorizer.create([AclBinding(CLUSTER, entry(operation=AclOperation.ALL))])
    for key, version in SENT:
        if key is ApiKey.WRITE_TXN_MARKERS:
            continue
        desk = Proofs(tasks, key)
        desk.dispatcher.authorize_by(authorizer)
        response = desk.request(version, CertificateUser("ann"))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert desk.calls == 0
    await stores.tasks.close()
    await stores.tree.close()
