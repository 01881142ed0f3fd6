"""Access control lists in the tree: Kafka's nodes, and changes of other brokers and tools."""

import json

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.cluster.acl_znodes import AclChangeNode
from ottla.cluster.zk.port import NoNode
from ottla.security.acls import AclOperation, PermissionType, ResourcePattern, ResourceType
from ottla.security.authorization import Requester, Rules
from ottla.security.principal import Principal
from ottla.server.authorization.store import AclStore
from tests.unit.server.authorization.conftest import PREFIX, TOPIC, Stores, entry, until

LITERAL_PATH, PREFIX_PATH = "/kafka-acl/Topic/t", "/kafka-acl-extended/prefixed/TransactionalId/tx-"


async def test_nodes_are_those_of_kafka(stores: Stores) -> None:
    """The notification has the format of the pattern's type."""
    store = await stores.store()
    await store.update(TOPIC, lambda entries: entries | {entry()})
    await store.update(
        PREFIX, lambda _: frozenset({entry(operation=AclOperation.DESCRIBE_CONFIGS)})
    )
    data, _ = await stores.session.get(LITERAL_PATH)
    assert json.loads(data) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:ann",
                "permissionType": "Allow",
                "host": "*",
                "operation": "Read",
            }
        ],
    }
    data, _ = await stores.session.get(PREFIX_PATH)
    assert json.loads(data)["acls"][0]["operation"] == "DescribeConfigs"
    changes = [
        (await stores.session.get(f"{parent}/{name}"))[0]
        for parent in (AclChangeNode.LITERAL_PARENT, AclChangeNode.EXTENDED_PARENT)
        for name in await stores.session.children(parent)
    ]
    assert changes[0] == b"TOPIC:t"
    assert json.loads(changes[1]) == {
        "version": 1,
        "resourceType": "TRANSACTIONAL_ID",
        "name": "tx-",
        "patternType": "PREFIXED",
    }


async def test_other_brokers_follow(stores: Stores) -> None:
    """They read a change, and the removal of the last entry, which removes the node."""
    store, other = await stores.store(), await stores.store()
    for pattern in (TOPIC, PREFIX):
        await store.update(pattern, lambda _: frozenset({entry()}))
        await until(lambda pattern=pattern: bool(other.lists.entries(pattern)))  # type: ignore[misc]
        await store.update(pattern, lambda _: frozenset())
        await until(lambda pattern=pattern: not other.lists.entries(pattern))  # type: ignore[misc]
    with pytest.raises(NoNode):
        await stores.session.get(LITERAL_PATH)


async def test_lists_are_read_at_the_start(stores: Stores) -> None:
    """Tools may have written them in other letters: names are compared without case."""
    await stores.session.ensure("/kafka-acl/Group/g")
    row = {"principal": "User:b", "permissionType": "DENY", "host": "10.0.0.1", "operation": "READ"}
    await stores.session.set(
        "/kafka-acl/Group/g", json.dumps({"version": 1, "acls": [row]}).encode()
    )
    await stores.session.ensure("/kafka-acl/Future/x")
    store = await stores.store()
    entries = store.lists.entries(ResourcePattern(ResourceType.GROUP, "g"))
    expected = entry("User:b", permission=PermissionType.DENY)._replace(host="10.0.0.1")
    assert entries == {expected}
    assert len(store.lists.patterns()) == 1


async def store_rows(stores: Stores, *rows: object, path: str = LITERAL_PATH) -> None:
    """Write rules into the tree, as another program does."""
    await stores.session.ensure(path)
    await stores.session.set(path, json.dumps({"version": 1, "acls": list(rows)}).encode())


def row(**changes: object) -> dict[str, object]:
    """Return a rule that allows ann to read, with changes; None removes a field."""
    fields = {"principal": "User:ann", "permissionType": "Allow", "host": "*", "operation": "Read"}
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


def may_read(store: AclStore, name: str = "t") -> bool:
    """Return True if ann may read a topic."""
    requester = Requester(Principal("User", "ann"), "10.0.0.1")
    return store.lists.allow(Rules(), requester, AclOperation.READ, ResourceType.TOPIC, name)


@pytest.mark.parametrize("permission", ["Maybe", "Unknown", "Any", "", None, 3, "allow "])
async def test_permission_that_is_not_known_does_not_grant_access(
    stores: Stores, permission: object, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a denial, so it takes a right away that another entry grants; the log has it."""
    await store_rows(stores, row(permissionType=permission))
    assert not may_read(await stores.store())
    assert f"entry not known path={LITERAL_PATH}" in caplog.text
    await store_rows(stores, row(permissionType=permission), row(operation="All"))
    assert not may_read(await stores.store())


@pytest.mark.parametrize(
    "stored", [row(operation="Sing"), row(operation="Any"), row(principal="ann"), row(host=None), 7]
)
async def test_entry_that_is_not_known_does_not_grant_access(
    stores: Stores, stored: object
) -> None:
    """Kafka ignores it, too."""
    await store_rows(stores, stored)
    assert not may_read(await stores.store())


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"version": 2, "acls": []}', b"\xff"])
async def test_list_that_cannot_be_read_denies_everything(
    stores: Stores, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start and later; rights by other patterns do not open the resource."""
    await store_rows(stores, row(), path="/kafka-acl/Topic/*")
    store = await stores.store()
    assert may_read(store)
    await stores.session.ensure(LITERAL_PATH)
    await stores.session.set(LITERAL_PATH, content)
    await stores.session.create(AclChangeNode.LITERAL_PREFIX, b"TOPIC:t", sequential=True)
    await until(lambda: not may_read(store))
    assert not may_read(await stores.store())
    assert may_read(store, "other")
    assert f"entry not known path={LITERAL_PATH}" in caplog.text
    await store.update(TOPIC, lambda _: frozenset())
    assert may_read(store)


async def test_empty_node_has_no_entry(stores: Stores) -> None:
    """A tool may have created it, as Kafka's tools do."""
    await stores.session.ensure(LITERAL_PATH)
    assert (await stores.store()).lists.patterns() == []


async def test_entries_that_are_not_known_keep_their_text(stores: Stores) -> None:
    """A newer version may read the list that this one has changed."""
    unknown = [row(operation="Sing"), row(permissionType="Maybe"), row(operation="READ")]
    await store_rows(stores, *unknown)
    store = await stores.store()
    await store.update(TOPIC, lambda entries: entries | {entry("User:ben")})
    stored = json.loads((await stores.session.get(LITERAL_PATH))[0])["acls"]
    assert len(stored) == 4
    assert all(one in stored for one in unknown)


async def test_patterns_that_are_not_known_stop_the_start(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    """Their denials could not be enforced; a broker that runs already continues and reports them."""
    store = await stores.store()
    await store_rows(stores, row(), path="/kafka-acl-extended/suffixed/Topic/t")
    with pytest.raises(ConfigError, match="does not know: suffixed"):
        await stores.store()
    await store.start(stores.tree.session())
    assert "does not know: suffixed" in caplog.text


async def test_lists_that_vanished_while_the_session_was_lost_are_forgotten(
    stores: Stores,
) -> None:
    """A second start reads what is in the tree, not more."""
    store = await stores.store()
    await store.update(TOPIC, lambda _: frozenset({entry()}))
    await stores.session.delete(LITERAL_PATH)
    await store.start(stores.tree.session())
    assert store.lists.patterns() == []


async def test_two_changes_at_once_are_both_kept(stores: Stores) -> None:
    """The second one reads the pattern again."""
    store, other = await stores.store(), await stores.store()
    is_first = True

    def add_ann(entries: frozenset[object]) -> frozenset[object]:
        nonlocal is_first
        if is_first:
            is_first = False
            stores.tasks.spawn(other.update(TOPIC, lambda old: old | {entry("User:ben")}), "other")
        return entries | {entry()}

    await store.update(TOPIC, add_ann)  # type: ignore[arg-type]
    await until(lambda: len(store.lists.entries(TOPIC)) == 2)
    await until(lambda: len(other.lists.entries(TOPIC)) == 2)


async def test_unchanged_entries_are_not_written(stores: Stores) -> None:
    """No broker is notified of nothing."""
    store = await stores.store()
    await store.update(TOPIC, lambda _: frozenset({entry()}))
    await store.update(TOPIC, lambda entries: entries | {entry()})
    assert len(await stores.session.children(AclChangeNode.LITERAL_PARENT)) == 1


async def test_unreadable_notification_is_skipped(stores: Stores) -> None:
    """The store reads later ones."""
    store, other = await stores.store(), await stores.store()
    for content in (b"\xff", b"FUTURE:t", b"t"):
        await stores.session.create(AclChangeNode.LITERAL_PREFIX, content, sequential=True)
    await store.update(TOPIC, lambda _: frozenset({entry()}))
    await until(lambda: bool(other.lists.entries(TOPIC)))


async def test_update_without_the_tree_is_an_error(stores: Stores) -> None:
    """The response has it; nothing is changed."""
    store: AclStore = await stores.store()
    session = stores.tree.session()
    await store.start(session)
    await session.close()
    with pytest.raises(ApiError) as error:
        await store.update(TOPIC, lambda _: frozenset({entry()}))
    assert error.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert store.lists.patterns() == []
