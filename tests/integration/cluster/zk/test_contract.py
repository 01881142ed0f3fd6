"""The contract of every implementation of Coordination: ZooKeeper's, as far as the cluster needs
it.
"""

import asyncio
from collections.abc import Callable

import pytest

from ottla.cluster.zk.port import (
    BadVersion,
    Check,
    Coordination,
    CoordinationError,
    Create,
    Delete,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionLost,
    SessionState,
    SetData,
    Stat,
)

from .conftest import CoordinationWorld


class Fired:
    """A watch that records its calls."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        self._changed.set()

    async def wait(self, count: int = 1) -> list[str]:
        """Return the calls when there are `count` of them."""
        async with asyncio.timeout(5):
            while len(self.paths) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.paths


async def settle(session: Coordination) -> None:
    """Wait until all earlier watches have fired."""
    watch = Fired()
    await session.exists("/settled", watch)
    await session.create("/settled")
    await watch.wait()
    await session.delete("/settled")


async def test_created_node_is_read_back(session: Coordination) -> None:
    """A node returns its data and version 0, and its two transaction ids are equal."""
    assert await session.create("/a", b"data") == "/a"
    data, stat = await session.get("/a")
    assert data == b"data"
    assert (stat.version, stat.children_version, stat.ephemeral_owner) == (0, 0, 0)
    assert stat.czxid == stat.mzxid > 0


async def test_missing_node_is_an_error_with_its_path(session: Coordination) -> None:
    """Every operation on a missing node names the path in its error."""
    for operation in (
        session.get("/none"),
        session.children("/none"),
        session.set("/none", b""),
        session.delete("/none"),
        session.create("/none/child"),
    ):
        with pytest.raises(NoNode) as refusal:
            await operation
        assert refusal.value.path.startswith("/none")
    assert await session.exists("/none") is None


async def test_creating_a_node_twice_is_rejected(session: Coordination) -> None:
    """The second creation raises NodeExists and changes nothing."""
    await session.create("/a", b"first")
    with pytest.raises(NodeExists):
        await session.create("/a", b"second")
    assert (await session.get("/a"))[0] == b"first"


async def test_setting_data_increments_the_version(session: Coordination) -> None:
    """Each change raises version and mzxid; czxid stays."""
    await session.create("/a")
    before = await session.exists("/a")
    assert before is not None
    stat = await session.set("/a", b"1")
    assert (stat.version, stat.czxid) == (1, before.czxid)
    assert stat.mzxid > before.mzxid
    assert (await session.set("/a", b"2", version=1)).version == 2
    assert (await session.get("/a")) == (b"2", await session.exists("/a"))


async def test_wrong_version_changes_nothing(session: Coordination) -> None:
    """A set or delete with an older version is rejected."""
    await session.create("/a")
    await session.set("/a", b"1")
    with pytest.raises(BadVersion):
        await session.set("/a", b"late", version=0)
    with pytest.raises(BadVersion):
        await session.delete("/a", version=0)
    assert (await session.get("/a"))[0] == b"1"


async def test_node_with_children_cannot_be_deleted(session: Coordination) -> None:
    """The children have to be deleted first."""
    await session.create("/a")
    await session.create("/a/b")
    with pytest.raises(NotEmpty):
        await session.delete("/a")
    await session.delete("/a/b")
    await session.delete("/a")
    assert await session.exists("/a") is None


async def test_children_are_sorted_names(session: Coordination) -> None:
    """The result has names, not paths, of the next level only."""
    await session.ensure("/a/c/deep")
    await session.ensure("/a/b")
    assert await session.children("/a") == ["b", "c"]
    assert "a" in await session.children("/")


async def test_children_version_counts_creations_and_deletions(session: Coordination) -> None:
    """Two creations and a deletion are three changes; a change of a child's data is none."""
    await session.create("/a")
    await session.create("/a/b")
    await session.create("/a/c")
    await session.set("/a/b", b"x")
    await session.delete("/a/c")
    stat = await session.exists("/a")
    assert stat is not None
    assert (stat.children_version, stat.version) == (3, 0)


async def test_ensure_creates_parents_and_can_be_repeated(session: Coordination) -> None:
    """An existing node keeps its data."""
    await session.create("/a", b"kept")
    await session.ensure("/a/b/c")
    await session.ensure("/a/b/c")
    assert (await session.get("/a"))[0] == b"kept"
    assert await session.children("/a/b") == ["c"]


async def test_concurrent_ensure_of_the_same_parents_succeeds(session: Coordination) -> None:
    """Brokers that start together can create the same parents."""
    await asyncio.gather(*(session.ensure(f"/x/y/{number % 3}") for number in range(9)))
    assert await session.children("/x/y") == ["0", "1", "2"]


async def test_sequential_names_count_every_child_ever_created(session: Coordination) -> None:
    """A name ends in ten digits from a counter per parent, and a deleted name is never used again."""
    await session.create("/a")
    assert await session.create("/a/n_", sequential=True) == "/a/n_0000000000"
    await session.create("/a/other")
    second = await session.create("/a/n_", sequential=True)
    assert second == "/a/n_0000000002"
    await session.delete(second)
    assert await session.create("/a/m_", b"x", sequential=True) == "/a/m_0000000003"


async def test_ephemeral_node_has_its_owner_and_is_deleted_with_it(
    world: CoordinationWorld,
) -> None:
    """When a session closes, exactly its ephemeral nodes are deleted."""
    owner, other = await world.session(), await world.session()
    await owner.ensure("/a/kept")
    await owner.create("/a/mine", ephemeral=True)
    await other.create("/a/theirs", ephemeral=True)
    stat = await other.exists("/a/mine")
    assert stat is not None
    assert stat.ephemeral_owner == owner.session_id != other.session_id
    await owner.close()
    assert await other.children("/a") == ["kept", "theirs"]


async def test_expired_session_is_notified_and_loses_its_nodes(world: CoordinationWorld) -> None:
    """The session's state is LOST, and every later operation is rejected."""
    victim, other = await world.session(), await world.session()
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    victim.on_session(states.put_nowait)
    await victim.create("/mine", ephemeral=True)
    gone = Fired()
    await other.exists("/mine", gone)
    await world.expire(victim)
    assert await gone.wait() == ["/mine"]
    async with asyncio.timeout(5):
        while await states.get() is not SessionState.LOST:
            pass
    for operation in (victim.get("/"), victim.create("/b"), victim.children("/")):
        with pytest.raises(SessionLost):
            await operation


async def test_closed_session_rejects_operations(session: Coordination) -> None:
    """A second close is no error, but an operation is one."""
    await session.close()
    await session.close()
    with pytest.raises(SessionLost):
        await session.exists("/")


async def test_data_watch_fires_once(session: Coordination) -> None:
    """A watch reports only the first change after it was set."""
    await session.create("/a")
    watch = Fired()
    await session.get("/a", watch)
    await session.set("/a", b"1")
    await session.set("/a", b"2")
    await watch.wait()
    await settle(session)
    assert watch.paths == ["/a"]


async def test_change_reported_by_a_watch_can_be_read(session: Coordination) -> None:
    """A reader that a watch has called sees the change."""
    await session.create("/a")
    seen: asyncio.Queue[bytes] = asyncio.Queue()
    tasks = []

    async def read() -> None:
        seen.put_nowait((await session.get("/a"))[0])

    def told(_: str) -> None:
        tasks.append(asyncio.get_running_loop().create_task(read()))

    await session.get("/a", told)
    await session.set("/a", b"new")
    async with asyncio.timeout(5):
        assert await seen.get() == b"new"


async def test_watch_on_a_missing_node_fires_when_it_is_created(session: Coordination) -> None:
    """Waiting for the creation of a node needs no polling."""
    watch = Fired()
    assert await session.exists("/a", watch) is None
    await session.create("/a")
    assert await watch.wait() == ["/a"]


async def test_failed_read_sets_no_watch(session: Coordination) -> None:
    """Only `exists` sets a watch on a missing node."""
    watch = Fired()
    with pytest.raises(NoNode):
        await session.get("/a", watch)
    with pytest.raises(NoNode):
        await session.children("/a", watch)
    await session.create("/a")
    await session.create("/a/b")
    await settle(session)
    assert watch.paths == []


async def test_deletion_fires_watches_of_both_kinds(session: Coordination) -> None:
    """Watches on the data and on the children of a node report its deletion."""
    await session.create("/a")
    data, existence, children, parent = Fired(), Fired(), Fired(), Fired()
    await session.get("/a", data)
    await session.exists("/a", existence)
    await session.children("/a", children)
    await session.children("/", parent)
    await session.delete("/a")
    assert await data.wait() == await existence.wait() == await children.wait() == ["/a"]
    assert await parent.wait() == ["/"]


async def test_child_watch_fires_for_children_only(session: Coordination) -> None:
    """The node's data, a child's data and a grandchild do not fire it."""
    await session.ensure("/a/b")
    watch = Fired()
    await session.children("/a", watch)
    await session.set("/a", b"x")
    await session.set("/a/b", b"x")
    await session.create("/a/b/c")
    await settle(session)
    assert watch.paths == []
    await session.create("/a/d")
    assert await watch.wait() == ["/a"]


async def test_same_watch_set_twice_fires_once(session: Coordination) -> None:
    """Setting the same function again before it fires has no effect."""
    await session.create("/a")
    watch = Fired()
    await session.get("/a", watch)
    await session.exists("/a", watch)
    await session.set("/a", b"1")
    await watch.wait()
    await settle(session)
    assert watch.paths == ["/a"]


async def test_other_sessions_changes_fire_watches(world: CoordinationWorld) -> None:
    """Brokers learn of each other through watches."""
    one, other = await world.session(), await world.session()
    await one.create("/a")
    watch = Fired()
    await one.children("/a", watch)
    await other.create("/a/b", ephemeral=True)
    assert await watch.wait() == ["/a"]


async def test_multi_returns_a_result_for_each_operation(session: Coordination) -> None:
    """A creation returns a path, new data a Stat, others nothing; all have one transaction id."""
    await session.ensure("/a/old")
    results = await session.multi(
        [
            Check("/a", 0),
            Create("/a/n_", b"1", sequential=True),
            SetData("/a", b"2", 0),
            Delete("/a/old"),
        ]
    )
    assert results[1] == "/a/n_0000000001"
    changed = results[2]
    assert isinstance(changed, Stat)
    assert changed.version == 1
    assert (results[0], results[3]) == (None, None)
    created = await session.exists("/a/n_0000000001")
    assert created is not None
    assert created.czxid == changed.mzxid


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Check("/a", 7), BadVersion),
        (Create("/a"), NodeExists),
        (SetData("/none", b""), NoNode),
        (Delete("/a/b"), NotEmpty),
    ],
)
async def test_failed_multi_changes_nothing(
    session: Coordination, last: Check | Create | SetData | Delete, error: type[CoordinationError]
) -> None:
    """All operations before the failing one are undone, with counters and names."""
    await session.ensure("/a/b/c")
    before = await session.exists("/a")
    watch = Fired()
    await session.children("/a", watch)
    with pytest.raises(error):
        await session.multi(
            [
                Create("/a/new", b"", ephemeral=True),
                SetData("/a", b"changed"),
                Create("/a/n_", sequential=True),
                Delete("/a/b/c"),
                Create("/a/b/d"),
                last,
            ]
        )
    await settle(session)
    assert watch.paths == []
    assert await session.exists("/a") == before
    assert await session.children("/a") == ["b"]
    assert await session.children("/a/b") == ["c"]
    assert await session.create("/a/n_", sequential=True) == "/a/n_0000000001"


async def test_multi_sees_its_own_earlier_operations(session: Coordination) -> None:
    """A whole topic, parents and children, is one transaction."""
    await session.multi(
        [Create("/t"), Create("/t/p"), Create("/t/p/0"), SetData("/t", b"1", 0), Check("/t", 1)]
    )
    assert await session.children("/t/p") == ["0"]


async def test_one_of_many_candidates_wins(world: CoordinationWorld) -> None:
    """An election is one multi: exactly one broker creates the node and increments the epoch."""
    sessions = [await world.session() for _ in range(5)]
    await sessions[0].create("/epoch", b"0")

    async def stand(session: Coordination) -> int:
        stat = await session.exists("/epoch")
        assert stat is not None
        try:
            await session.multi(
                [Create("/leader", ephemeral=True), SetData("/epoch", b"1", stat.version)]
            )
        except (NodeExists, BadVersion):
            return 0
        return session.session_id

    winners = [winner for winner in await asyncio.gather(*map(stand, sessions)) if winner]
    leader = await sessions[0].exists("/leader")
    epoch = await sessions[0].exists("/epoch")
    assert leader is not None
    assert epoch is not None
    assert winners == [leader.ephemeral_owner]
    assert epoch.version == 1


async def test_writers_with_versions_never_lose_an_update(world: CoordinationWorld) -> None:
    """Ten increments by each of five writers make fifty, whichever of them had to retry."""
    sessions = [await world.session() for _ in range(5)]
    await sessions[0].create("/count", b"0")

    async def increment(session: Coordination) -> None:
        done = 0
        while done < 10:
            data, stat = await session.get("/count")
            try:
                await session.set("/count", b"%d" % (int(data) + 1), stat.version)
                done += 1
            except BadVersion:
                continue

    await asyncio.gather(*map(increment, sessions))
    assert (await sessions[0].get("/count"))[0] == b"50"


async def test_transaction_ids_only_grow(session: Coordination) -> None:
    """The czxid of a broker's registration is its epoch, so a later registration has a higher one."""
    zxids = []
    for _ in range(3):
        await session.create("/broker", ephemeral=True)
        stat = await session.exists("/broker")
        assert stat is not None
        zxids.append(stat.czxid)
        await session.delete("/broker")
    assert zxids == sorted(set(zxids))


def _nothing() -> Callable[[str], None]:
    return lambda _: None


async def test_binary_data_and_odd_names_survive(session: Coordination) -> None:
    """Names may have spaces, angle brackets and other alphabets; data is any bytes."""
    for name in ("<default>", "my%20app", "é", "a b", "__consumer_offsets", "."):
        await session.create(f"/{name}x", bytes(range(256)))
        assert (await session.get(f"/{name}x", _nothing()))[0] == bytes(range(256))


async def test_ephemeral_node_has_no_children(session: Coordination) -> None:
    """A node cannot be created below an ephemeral one, which could not end before its children."""
    await session.create("/mine", ephemeral=True)
    with pytest.raises(NoChildrenForEphemerals):
        await session.create("/mine/child")
    assert await session.children("/mine") == []
