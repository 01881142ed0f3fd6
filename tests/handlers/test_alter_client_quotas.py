"""AlterClientQuotas: what is set, what is refused, what the tree holds, and that it holds at once."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.znodes import ConfigChangeNode, ConfigNode
from ottla.server.handlers import alter_client_quotas
from ottla.server.quotas.entities import Entity
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from tests.handlers.admin import AdminBroker, admin_broker

Names = dict[str, str | None]
BYTES = "producer_byte_rate"


def entry(names: Names, **values: float | None) -> AlterClientQuotasRequestEntryData:
    """Set values of an entity; None removes one."""
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )


async def alter(
    broker: AdminBroker, *entries: AlterClientQuotasRequestEntryData, validate_only: bool = False
) -> list[tuple[ErrorCode, Names]]:
    """Send one request; return code and entity of each result."""
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response = await alter_client_quotas.handle(broker.context(1), request)
    return [
        (
            ErrorCode(item.error_code),
            {entity.entity_type: entity.entity_name for entity in item.entity},
        )
        for item in response.entries
    ]


async def stored(broker: AdminBroker, entity_type: str, entity: str) -> str:
    """Return what the tree holds of an entity."""
    data, _ = await broker.world.tree.session().get(ConfigNode.path(entity_type, entity))
    return data.decode()


async def test_a_quota_holds_when_the_answer_is_sent() -> None:
    """No notification has to come first."""
    async with admin_broker() as broker:
        assert await alter(broker, entry({"user": "alice"}, producer_byte_rate=1024.0)) == [
            (ErrorCode.NONE, {"user": "alice"})
        ]
        found = broker.quotas.book.applied(BYTES, "alice", "any")
        assert found is not None and found.limit == 1024


async def test_the_tree_holds_what_kafka_would_write() -> None:
    """Path, JSON and change notification of Kafka 3.9."""
    async with admin_broker() as broker:
        names: Names = {"user": "al ice", "client-id": None}
        await alter(broker, entry(names, producer_byte_rate=1024.0, request_percentage=50.0))
        path = "al%20ice/clients/<default>"
        assert await stored(broker, "users", path) == (
            '{"version":1,"config":{"request_percentage":"50.0","producer_byte_rate":"1024"}}'
        )
        session = broker.world.tree.session()
        (change,) = await session.children(ConfigChangeNode.PARENT)
        data, _ = await session.get(f"{ConfigChangeNode.PARENT}/{change}")
        assert ConfigChangeNode.decode("", data) == ("users", path)
        await alter(broker, entry({"ip": "::1"}, connection_creation_rate=5.0))
        assert '"connection_creation_rate":"5"' in await stored(broker, "ips", "%3A%3A1")


async def test_removing_leaves_the_others() -> None:
    """Also settings that are no quotas, such as a user's credentials."""
    async with admin_broker() as broker:
        session = broker.world.tree.session()
        await session.ensure(ConfigNode.path("users", "alice"))
        former = ConfigNode.encode({"SCRAM-SHA-256": "secret", BYTES: "7"})
        await session.set(ConfigNode.path("users", "alice"), former)
        assert await alter(
            broker,
            entry(
                {"user": "alice"}, producer_byte_rate=None, consumer_byte_rate=9.0, nonsense=None
            ),
        ) == [(ErrorCode.NONE, {"user": "alice"})]
        assert ConfigNode.decode("", (await stored(broker, "users", "alice")).encode()) == {
            "SCRAM-SHA-256": "secret",
            "consumer_byte_rate": "9",
        }
        assert broker.quotas.book.applied(BYTES, "alice", "c") is None


async def test_validate_only_changes_nothing() -> None:
    """But says what would be refused."""
    async with admin_broker() as broker:
        good, bad = entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "b"}, nonsense=1.0)
        assert await alter(broker, good, bad, validate_only=True) == [
            (ErrorCode.NONE, {"user": "a"}),
            (ErrorCode.INVALID_REQUEST, {"user": "b"}),
        ]
        assert not broker.quotas.book


@pytest.mark.parametrize(
    "refused",
    [
        entry({}, producer_byte_rate=1.0),
        entry({"user": ""}, producer_byte_rate=1.0),
        entry({"planet": "earth"}, producer_byte_rate=1.0),
        entry({"user": "a"}, producer_byte_rate=0.0),
        entry({"user": "a"}, producer_byte_rate=1.5),
        entry({"user": "a"}, consumer_byte_rate=5.0, connection_creation_rate=1.0),
        entry({"ip": "no.such.host"}, connection_creation_rate=1.0),
        entry({"ip": "1.1.1.1", "user": "a"}, connection_creation_rate=1.0),
    ],
)
async def test_what_is_refused_changes_nothing(refused: AlterClientQuotasRequestEntryData) -> None:
    """INVALID_REQUEST for the entity as a whole, and the others are changed."""
    async with admin_broker() as broker:
        other = entry({"client-id": "c"}, producer_byte_rate=3.0)
        codes = [code for code, _ in await alter(broker, refused, other)]
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
        found = broker.quotas.book.find([], strict=False)
        assert [entity for entity, _ in found] == [Entity(client_id="c")]


async def test_an_entity_that_comes_twice_is_an_error() -> None:
    """Answered once; what was said of it first counts, as in Kafka."""
    async with admin_broker() as broker:
        first, second = (entry({"user": "a"}, producer_byte_rate=value) for value in (1.0, 2.0))
        assert await alter(broker, first, second) == [(ErrorCode.INVALID_REQUEST, {"user": "a"})]
        found = broker.quotas.book.applied(BYTES, "a", "c")
        assert found is not None and found.limit == 1


async def test_a_quota_that_comes_twice_is_an_error() -> None:
    """Nothing of the entity is changed."""
    async with admin_broker() as broker:
        twice = entry({"user": "a"}, producer_byte_rate=1.0)
        twice.ops *= 2
        assert await alter(broker, twice) == [(ErrorCode.INVALID_REQUEST, {"user": "a"})]
        assert not broker.quotas.book


async def test_of_a_type_that_comes_twice_the_last_name_counts() -> None:
    """As in Kafka, which reads the entity into a map."""
    async with admin_broker() as broker:
        names = entry({"user": "a"}, producer_byte_rate=1.0)
        names.entity.append(EntityData(entity_type="user", entity_name="b"))
        assert await alter(broker, names) == [(ErrorCode.NONE, {"user": "b"})]
