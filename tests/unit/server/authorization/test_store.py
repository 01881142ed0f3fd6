"""Access control lists in the tree: Kafka's nodes, and changes of other brokers and tools."""

import json

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.acl_znodes import AclChangeNode
from ottla.cluster.zk.port import NoNode
from ottla.security.acls import AclOperation, PermissionType, ResourcePattern, ResourceType
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
