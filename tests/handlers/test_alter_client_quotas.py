"""AlterClientQuotas: applied and rejected quotas, the tree, and when they take effect."""

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
    """Send one request; return the code and entity of each result."""
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
    """Return the settings of an entity in the tree."""
    data, _ = await broker.world.tree.session().get(ConfigNode.path(entity_type, entity))
    return data.decode()


async def test_quota_applies_when_the_response_is_sent() -> None:
    """A quota does not wait for a notification."""
    async with admin_broker() as broker:
        assert await alter(broker, entry({"user": "alice"}, producer_byte_rate=1024.0)) == [
            (ErrorCode.NONE, {"user": "alice"})
        ]
        quota = broker.quotas.book.applied(BYTES, "alice", "any")
        assert quota is not None and quota.limit == 1024


async def test_tree_has_what_kafka_would_write() -> None:
    """Path, JSON and change notification are the same as in Kafka 3.9."""
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


async def test_removing_a_quota_keeps_the_others() -> None:
    """Other settings of the entity, such as a user's credentials, are kept."""
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


def removal(names: Names, *keys: str) -> AlterClientQuotasRequestEntryData:
    """Remove keys of an entity, whose names may be any text."""
    removed = entry(names)
    removed.ops = [OpData(key=key, remove=True) for key in keys]
    return removed


@pytest.mark.parametrize("key", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("names", [{"user": "ann"}, {"user": "ann", "client-id": "c"}])
@pytest.mark.parametrize("validate_only", [False, True])
async def test_credential_is_not_a_quota(key: str, names: Names, validate_only: bool) -> None:
    """It is stored beside a user's quotas, and another API with another right changes it."""
    async with admin_broker() as broker:
        path = "/".join(("ann", "clients", "c")[: 2 * len(names) - 1])
        session = broker.world.tree.session()
        await session.ensure(ConfigNode.path("users", path))
        former = ConfigNode.encode({"SCRAM-SHA-256": "a", "SCRAM-SHA-512": "b", BYTES: "7"})
        await session.set(ConfigNode.path("users", path), former)
        invalid = [(ErrorCode.INVALID_REQUEST, names)]
        removed = removal(names, BYTES, key)
        assert await alter(broker, removed, validate_only=validate_only) == invalid
        written = entry(names, **{key: 1.0})
        assert await alter(broker, written, validate_only=validate_only) == invalid
        assert await stored(broker, "users", path) == former.decode()


@pytest.mark.parametrize("names", [{"user": "ann"}, {"client-id": "ann"}, {"ip": "10.0.0.1"}])
async def test_only_quotas_are_removed(names: Names) -> None:
    """Keys that an entity cannot have as a quota stay, also other programs' keys."""
    async with admin_broker() as broker:
        ((kind, name),) = names.items()
        entity_type = {"user": "users", "client-id": "clients", "ip": "ips"}[kind]
        quota = "connection_creation_rate" if kind == "ip" else BYTES
        keys = {quota, "scram-sha-256", "SCRAM-SHA-1", "retention.ms", "", " ", f"{quota} "}
        session = broker.world.tree.session()
        path = ConfigNode.path(entity_type, str(name))
        await session.ensure(path)
        await session.set(path, ConfigNode.encode(dict.fromkeys(keys, "7")))
        assert await alter(broker, removal(names, *keys)) == [(ErrorCode.NONE, names)]
        left = ConfigNode.decode("", (await stored(broker, entity_type, str(name))).encode())
        assert left.keys() == keys - {quota}


async def test_validate_only_changes_nothing() -> None:
    """The response still reports invalid quotas."""
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
async def test_rejected_entity_is_not_changed(refused: AlterClientQuotasRequestEntryData) -> None:
    """The whole entity gets INVALID_REQUEST, and the other entities are changed."""
    async with admin_broker() as broker:
        other = entry({"client-id": "c"}, producer_byte_rate=3.0)
        codes = [code for code, _ in await alter(broker, refused, other)]
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
        result = broker.quotas.book.find([], strict=False)
        assert [entity for entity, _ in result] == [Entity(client_id="c")]


async def test_repeated_entity_is_an_error() -> None:
    """It has one result, and its first occurrence applies, as in Kafka."""
    async with admin_broker() as broker:
        first, second = (entry({"user": "a"}, producer_byte_rate=value) for value in (1.0, 2.0))
        assert await alter(broker, first, second) == [(ErrorCode.INVALID_REQUEST, {"user": "a"})]
        quota = broker.quotas.book.applied(BYTES, "a", "c")
        assert quota is not None and quota.limit == 1


async def test_repeated_quota_is_an_error() -> None:
    """No quota of the entity is changed."""
    async with admin_broker() as broker:
        twice = entry({"user": "a"}, producer_byte_rate=1.0)
        twice.ops *= 2
        assert await alter(broker, twice) == [(ErrorCode.INVALID_REQUEST, {"user": "a"})]
        assert not broker.quotas.book


async def test_last_name_of_a_repeated_entity_type_applies() -> None:
    """Kafka reads the entity into a map."""
    async with admin_broker() as broker:
        names = entry({"user": "a"}, producer_byte_rate=1.0)
        names.entity.append(EntityData(entity_type="user", entity_name="b"))
        assert await alter(broker, names) == [(ErrorCode.NONE, {"user": "b"})]
