"""The rights of the sender of a request."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.net.connection import Connection
from ottla.security.acls import AclBinding, AclOperation, ResourcePattern, ResourceType
from ottla.security.authorization import Rules
from ottla.security.broker_proof import ProofToPeer
from ottla.security.principal import Principal
from ottla.server import operations
from ottla.server.authentication.identity import CertificateUser
from ottla.server.authorization.access import Access, host_address, sender_of
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.current import Current
from tests.unit.server.authorization.conftest import TOPIC, Stores, entry

READ = AclOperation.READ


async def access_of(stores: Stores, identity: Any = None) -> Access:
    """Return the rights of a connection."""
    connection = SimpleNamespace(identity=identity, peer_address=("10.0.0.1", 1), known_sender=None)
    current = Current(
        image=ClusterImage(topic_names={b"i" * 16: "t"}), options=BROKER_OPTIONS.parse({})
    )
    authorizer = Authorizer(Rules(), await stores.store())
    return Access(authorizer, cast(Connection, connection), 1, current)


async def test_principal_is_the_user(stores: Stores) -> None:
    """The user may be one of a certificate; without a user it is ANONYMOUS."""
    assert (await access_of(stores)).requester == (Principal("User", "ANONYMOUS"), "10.0.0.1")
    known = await access_of(stores, CertificateUser("CN=ann"))
    assert known.requester.principal == Principal("User", "CN=ann")


async def test_claim_to_be_a_broker_does_not_hide_the_certificate(stores: Stores) -> None:
    """Otherwise a client could choose to be ANONYMOUS, which may have other rights."""
    ann = CertificateUser("CN=ann")
    for identity in (ann, ProofToPeer({1: b"s" * 32}, b"n" * 16, ann)):
        access = await access_of(stores, identity)
        assert access.requester.principal == Principal("User", "CN=ann")


async def test_proven_broker_may_do_everything(stores: Stores) -> None:
    """One that only claims to be a broker may not."""
    proof = ProofToPeer({1: b"s" * 32}, b"n" * 16)
    assert not (await access_of(stores, proof)).may_topic(READ, "t")
    proof.broker_id = 2
    broker = await access_of(stores, proof)
    assert broker.may_topic(READ, "t")
    assert broker.may_some(AclOperation.WRITE, ResourceType.TOPIC)
    broker.require(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)


def test_sender_is_remembered_until_the_identity_changes() -> None:
    """During an exchange each request finds its sender again."""
    peer = SimpleNamespace(identity=None, peer_address=("10.0.0.1", 1), known_sender=None)
    connection = cast(Connection, peer)
    anonymous = sender_of(connection)
    assert sender_of(connection) is anonymous
    proof = peer.identity = ProofToPeer({1: b"s" * 32}, b"n" * 16)
    assert not sender_of(connection).is_broker
    proof.broker_id = 2
    assert sender_of(connection).is_broker
    peer.identity = CertificateUser("CN=ann")
    assert sender_of(connection).requester.principal == Principal("User", "CN=ann")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ResourceType.DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ],
)
async def test_error_tells_the_type_of_resource(
    stores: Stores, kind: ResourceType, code: ErrorCode
) -> None:
    """Each type of resource has its error, as in Kafka."""
    access = await access_of(stores)
    with pytest.raises(ApiError) as error:
        access.require(READ, kind, "x")
    assert error.value.code is code


async def test_partition_is_found_only_if_it_may_be_read(stores: Stores) -> None:
    """The check knows names and ids; an id that the metadata does not have is unknown."""
    access = await access_of(stores)
    get = access.readable(lambda topic, number: (topic, number))
    for topic in ("t", b"i" * 16):
        with pytest.raises(ApiError) as error:
            get(topic, 0)
        assert error.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(ApiError) as error:
        get(b"j" * 16, 0)
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_ID
    await access.authorizer.create([AclBinding(TOPIC, entry("User:ANONYMOUS"))])
    assert get("t", 3) == ("t", 3)
    assert get(b"i" * 16, 3) == (b"i" * 16, 3)


async def test_operations_are_a_bit_field(stores: Stores) -> None:
    """Operations on the cluster need DESCRIBE; without an authorizer all are allowed."""
    access = await access_of(stores)
    await access.authorizer.create([AclBinding(TOPIC, entry("User:*"))])
    assert operations.on_topic(access, "t") == 1 << 3 | 1 << 8
    assert operations.on_group(access, "g") == 0
    assert operations.on_cluster(access) == 0
    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    await access.authorizer.create(
        [AclBinding(cluster, entry("User:*", operation=AclOperation.ALTER))]
    )
    assert operations.on_cluster(access) == 1 << 7 | 1 << 8
    assert operations.on_topic(None, "t") == operations.ON_TOPIC
    assert operations.on_group(None, "g") == operations.ON_GROUP
    assert operations.on_cluster(None) == operations.ON_CLUSTER


@pytest.mark.parametrize(
    ("host", "java"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::a", "2001:db8:0:0:0:0:0:a"),
        ("socket", "socket"),
    ],
)
def test_addresses_are_written_as_by_java(host: str, java: str) -> None:
    """Entries for Apache Kafka brokers name hosts in this way."""
    assert host_address(host) == java
