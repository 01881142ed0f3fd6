"""The table of checks, and how a check and a handler become one."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.cluster.image import ClusterImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.security.acls import ANY, AclBinding, AclOperation, ResourcePattern, ResourceType
from ottla.security.authorization import Rules
from ottla.server.authentication.identity import CertificateUser
from ottla.server.authorization import access, groups, records
from ottla.server.authorization.access import Access, sender_of
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.authorization.checks import CHECKS, OF_SHORTCUTS
from ottla.server.authorization.guarding import allow_everyone, guarded, topic_right
from ottla.server.current import Current
from ottla.server.transport.apis import ROWS
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.authorization.conftest import TOPIC, Stores, entry

# Everyone may find out what a broker serves, and prove who one is; brokers are no secret. The
# handlers check the owner of a token, and telemetry is of the client itself.
OPEN = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


def test_every_served_api_is_checked() -> None:
    """A new API needs a row in the table, and a reason if everyone may use it."""
    assert set(CHECKS) == {row.handler.API for row in ROWS}
    assert {key for key, check in CHECKS.items() if check is allow_everyone} == OPEN
    assert set(OF_SHORTCUTS) == {row.handler.API for row in ROWS if row.shortcut is not None}


class Sender:
    """A connection of a user without any right, and the context of its requests."""

    def __init__(self, authorizer: Authorizer, version: int = 9) -> None:
        self.authorizer = authorizer
        self.connection: Any = SimpleNamespace(
            identity=None, peer_address=("10.0.0.1", 1), known_sender=None
        )
        self.api_key, self.api_version, self.client_id = 3, version, None
        self.access: Access | None = None
        self.current = Current(
            image=ClusterImage(topic_names={b"i" * 16: "t"}), options=BROKER_OPTIONS.parse({})
        )

    def rights(self) -> Access:
        """Return the rights of the sender."""
        return Access(self.authorizer, self.connection, self.api_version, self.current)


@pytest.fixture
async def sender(stores: Stores) -> Sender:
    """Return a sender without rights."""
    return Sender(Authorizer(Rules(), await stores.store()))


async def test_check_may_answer_complete_or_pass(sender: Sender) -> None:
    """Handlers may respond at once, later, or in a task."""
    loop = asyncio.get_running_loop()

    def later(_context: Any, _request: Any) -> Any:
        future = loop.create_future()
        loop.call_soon(future.set_result, ["handler"])
        return future

    async def task(_context: Any, _request: Any) -> Any:
        return ["handler"]

    def at_once(_context: Any, _request: Any) -> Any:
        return ["handler"]

    for handle in (at_once, later, task):
        for verdict, expected in (
            (None, ["handler"]),
            (["check"], ["check"]),
            (lambda response: [*response, "completed"], ["handler", "completed"]),
        ):
            checked = guarded(
                handle, lambda *_, verdict=verdict: verdict, sender.authorizer, sender.current
            )
            response = checked(sender, object())
            if asyncio.iscoroutine(response) or isinstance(response, asyncio.Future):
                response = await response
            assert response == expected
            assert sender.access is not None


async def test_refused_request_does_not_reach_the_handler(sender: Sender) -> None:
    """The dispatcher puts the error into the response."""

    def handle(_context: Any, _request: Any) -> Any:
        raise AssertionError("the handler was called")

    check = CHECKS[ApiKey.DESCRIBE_ACLS]
    checked = guarded(handle, check, sender.authorizer, sender.current)
    with pytest.raises(ApiError) as error:
        checked(sender, object())
    assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def produced(*names: str, acks: int = -1, **topic: Any) -> ProduceRequest:
    """Return a request with one partition of each topic."""
    return ProduceRequest(
        acks=acks,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=0, records=b"")], **topic
            )
            for name in names
        ],
    )


async def test_allowed_topics_are_passed_on(sender: Sender) -> None:
    """The response names the others with their error."""
    allowed = ResourcePattern(ResourceType.TOPIC, "open")
    right = entry("User:ANONYMOUS", operation=AclOperation.WRITE)
    await sender.authorizer.create([AclBinding(allowed, right)])
    request = produced("open", "closed")
    verdict = records.check_produce(sender.rights(), request)
    assert [topic.name for topic in request.topic_data] == ["open"]
    response = verdict(SimpleNamespace(responses=[]))
    (topic,) = response.responses
    assert topic.name == "closed"
    assert topic.partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_refused_request_without_a_response_closes_the_connection(sender: Sender) -> None:
    """The client learns of it in no other way."""
    with pytest.raises(ProtocolError, match="acks=0 is not authorized"):
        records.check_produce(sender.rights(), produced("closed", acks=0))


async def test_topic_id_that_the_metadata_does_not_have_is_unknown(sender: Sender) -> None:
    """The leader may know the topic already, but nothing would check its name."""
    sender.api_version = 13
    response = records.check_produce(sender.rights(), produced("", topic_id=b"j" * 16))
    (topic,) = response.responses
    assert topic.topic_id == b"j" * 16
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_right_to_a_topic_follows_the_lists(sender: Sender) -> None:
    """The fast paths ask for it, for each connection and topic."""
    may = topic_right(AclOperation.READ, sender.authorizer, sender.current)
    assert not may(sender.connection, "t")
    await sender.authorizer.create([AclBinding(TOPIC, entry("User:ANONYMOUS"))])
    assert may(sender.connection, "t")
    assert not may(sender.connection, "u")
    write = topic_right(AclOperation.WRITE, sender.authorizer, sender.current)
    assert not write(sender.connection, "t")
    sender.connection.identity = CertificateUser("CN=ann")
    assert not may(sender.connection, "t")
    sender.connection.identity = None
    assert may(sender.connection, "t")
    await sender.authorizer.delete([ANY])
    assert not may(sender.connection, "t")


async def test_remembered_rights_are_bounded(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that uses very many topics asks the authorizer again."""
    monkeypatch.setattr(access, "_ALLOWED_MAX", 2)
    known = sender_of(sender.connection)
    for topic in ("t", "u", "v"):
        known.remember(1, 2, topic)
        assert known.is_allowed(1, 2, topic)
    assert not known.is_allowed(1, 2, "t")


async def test_follower_needs_the_action_of_the_cluster(sender: Sender) -> None:
    """A consumer is checked where its partitions are read."""
    assert records.check_fetch(sender.rights(), FetchRequest(replica_id=-1)) is None
    with pytest.raises(ApiError) as error:
        records.check_fetch(sender.rights(), FetchRequest(replica_id=2))
    assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cast(Any, CHECKS[ApiKey.FETCH]) is records.check_fetch


async def test_offsets_of_a_group_that_is_named_twice_are_hidden_in_both_places(
    sender: Sender,
) -> None:
    """One entry asks for all topics, the other one for a topic by its name."""
    group = ResourcePattern(ResourceType.GROUP, "g")
    right = entry("User:ANONYMOUS", operation=AclOperation.DESCRIBE)
    await sender.authorizer.create([AclBinding(group, right)])
    named = OffsetFetchRequestTopics(name="closed", partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="g", topics=None),
            OffsetFetchRequestGroup(group_id="g", topics=[named]),
        ]
    )
    complete = groups.check_offset_fetch(sender.rights(), request)
    stored = OffsetFetchResponseTopics(name="closed", partitions=[])
    response = complete(
        OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id="g", topics=[stored]),
                OffsetFetchResponseGroup(group_id="g", topics=[]),
            ]
        )
    )
    assert response.groups[0].topics == []
    (topic,) = response.groups[1].topics
    assert topic.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
