"""What every implementation of Coordination keeps to: ZooKeeper's contract as the cluster needs it."""

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
    """A watch that remembers what it was told."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        self._changed.set()

    async def wait(self, count: int = 1) -> list[str]:
        """Return what was told once it is `count` calls."""
        async with asyncio.timeout(5):
            while len(self.paths) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.paths


async def settle(session: Coordination) -> None:
    """Wait until whatever was announced before has been told."""
    told = Fired()
    await session.exists("/settled", told)
    await session.create("/settled")
    await told.wait()
    await session.delete("/settled")


async def test_created_node_is_read_back(session: Coordination) -> None:
    """A node holds its data, begins at version 0, and its two transaction ids are one."""
    assert await session.create("/a", b"data") == "/a"
    data, stat = await session.get("/a")
    assert data == b"data"
    assert (stat.version, stat.children_version, stat.ephemeral_owner) == (0, 0, 0)
    assert stat.czxid == stat.mzxid > 0


async def test_missing_node_is_refused_by_its_path(session: Coordination) -> None:
    """Every operation on what is not there says which path it was."""
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


async def test_creating_a_node_twice_is_refused(session: Coordination) -> None:
    """The second creator hears NodeExists and changes nothing."""
    await session.create("/a", b"first")
    with pytest.raises(NodeExists):
        await session.create("/a", b"second")
    assert (await session.get("/a"))[0] == b"first"


async def test_setting_data_counts_the_version(session: Coordination) -> None:
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
    """A writer that read an older version is refused, for set and for delete."""
    await session.create("/a")
    await session.set("/a", b"1")
    with pytest.raises(BadVersion):
        await session.set("/a", b"late", version=0)
    with pytest.raises(BadVersion):
        await session.delete("/a", version=0)
    assert (await session.get("/a"))[0] == b"1"


async def test_node_with_children_cannot_be_deleted(session: Coordination) -> None:
    """A parent goes after its children."""
    await session.create("/a")
    await session.create("/a/b")
    with pytest.raises(NotEmpty):
        await session.delete("/a")
    await session.delete("/a/b")
    await session.delete("/a")
    assert await session.exists("/a") is None


async def test_children_are_sorted_names(session: Coordination) -> None:
    """The answer holds names, not paths, and only of the next level."""
    await session.ensure("/a/c/deep")
    await session.ensure("/a/b")
    assert await session.children("/a") == ["b", "c"]
    assert "a" in await session.children("/")


async def test_children_version_counts_what_comes_and_goes(session: Coordination) -> None:
    """Two creations and a deletion are three changes; data of a child is none."""
    await session.create("/a")
    await session.create("/a/b")
    await session.create("/a/c")
    await session.set("/a/b", b"x")
    await session.delete("/a/c")
    stat = await session.exists("/a")
    assert stat is not None
    assert (stat.children_version, stat.version) == (3, 0)


async def test_ensure_makes_parents_and_may_be_repeated(session: Coordination) -> None:
    """What exists keeps its data."""
    await session.create("/a", b"kept")
    await session.ensure("/a/b/c")
    await session.ensure("/a/b/c")
    assert (await session.get("/a"))[0] == b"kept"
    assert await session.children("/a/b") == ["c"]


async def test_many_ensure_the_same_parents_at_once(session: Coordination) -> None:
    """Brokers that start together do not stumble over one another."""
    await asyncio.gather(*(session.ensure(f"/x/y/{number % 3}") for number in range(9)))
    assert await session.children("/x/y") == ["0", "1", "2"]


async def test_sequential_names_count_every_child_ever_made(session: Coordination) -> None:
    """Ten digits, one counter per parent, and a deleted name is never given again."""
    await session.create("/a")
    assert await session.create("/a/n_", sequential=True) == "/a/n_0000000000"
    await session.create("/a/other")
    second = await session.create("/a/n_", sequential=True)
    assert second == "/a/n_0000000002"
    await session.delete(second)
    assert await session.create("/a/m_", b"x", sequential=True) == "/a/m_0000000003"


async def test_ephemeral_node_names_its_owner_and_goes_with_it(world: CoordinationWorld) -> None:
    """When a session closes, its ephemerals are gone, and only they."""
    owner, other = await world.session(), await world.session()
    await owner.ensure("/a/kept")
    await owner.create("/a/mine", ephemeral=True)
    await other.create("/a/theirs", ephemeral=True)
    stat = await other.exists("/a/mine")
    assert stat is not None
    assert stat.ephemeral_owner == owner.session_id != other.session_id
    await owner.close()
    assert await other.children("/a") == ["kept", "theirs"]


async def test_expired_session_is_told_and_loses_its_nodes(world: CoordinationWorld) -> None:
    """An expiry shows as LOST, after which every operation is refused."""
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


async def test_closed_session_refuses_to_work(session: Coordination) -> None:
    """Closing twice is no error; working afterwards is."""
    await session.close()
    await session.close()
    with pytest.raises(SessionLost):
        await session.exists("/")


async def test_data_watch_fires_once(session: Coordination) -> None:
    """A watch announces the first change after it was left, and only that."""
    await session.create("/a")
    told = Fired()
    await session.get("/a", told)
    await session.set("/a", b"1")
    await session.set("/a", b"2")
    await told.wait()
    await settle(session)
    assert told.paths == ["/a"]


async def test_what_a_watch_announces_can_be_read(session: Coordination) -> None:
    """A reader that is woken by a watch sees the change."""
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
    """Waiting for a node to appear needs no polling."""
    told = Fired()
    assert await session.exists("/a", told) is None
    await session.create("/a")
    assert await told.wait() == ["/a"]


async def test_failed_read_leaves_no_watch(session: Coordination) -> None:
    """Only `exists` watches what is not there."""
    told = Fired()
    with pytest.raises(NoNode):
        await session.get("/a", told)
    with pytest.raises(NoNode):
        await session.children("/a", told)
    await session.create("/a")
    await session.create("/a/b")
    await settle(session)
    assert told.paths == []


async def test_deletion_fires_watches_of_both_kinds(session: Coordination) -> None:
    """Whoever watches data or children of a node hears that it is gone."""
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
    """Neither the node's own data nor a child's data nor a grandchild is news to it."""
    await session.ensure("/a/b")
    told = Fired()
    await session.children("/a", told)
    await session.set("/a", b"x")
    await session.set("/a/b", b"x")
    await session.create("/a/b/c")
    await settle(session)
    assert told.paths == []
    await session.create("/a/d")
    assert await told.wait() == ["/a"]


async def test_same_watch_left_twice_fires_once(session: Coordination) -> None:
    """A watch is its function: leaving it again before it fires adds nothing."""
    await session.create("/a")
    told = Fired()
    await session.get("/a", told)
    await session.exists("/a", told)
    await session.set("/a", b"1")
    await told.wait()
    await settle(session)
    assert told.paths == ["/a"]


async def test_other_sessions_changes_fire_watches(world: CoordinationWorld) -> None:
    """Watches are how brokers hear of one another."""
    one, other = await world.session(), await world.session()
    await one.create("/a")
    told = Fired()
    await one.children("/a", told)
    await other.create("/a/b", ephemeral=True)
    assert await told.wait() == ["/a"]


async def test_multi_answers_each_operation(session: Coordination) -> None:
    """A path for a creation, a Stat for new data, nothing for the others; one transaction id."""
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
async def test_multi_that_fails_has_done_nothing(
    session: Coordination, last: Check | Create | SetData | Delete, error: type[CoordinationError]
) -> None:
    """Whatever came before the failing operation is undone, counters and names included."""
    await session.ensure("/a/b/c")
    before = await session.exists("/a")
    told = Fired()
    await session.children("/a", told)
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
    assert told.paths == []
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


async def test_one_of_many_rivals_wins(world: CoordinationWorld) -> None:
    """An election is one multi: exactly one broker creates the node and raises the epoch."""
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
    """Ten increments by each of five writers make fifty, whoever had to try again."""
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
    """The czxid of a broker's registration is its epoch: a later life has a higher one."""
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
    """Names with spaces, angle brackets and other alphabets are names; data is bytes."""
    for name in ("<default>", "my%20app", "é", "a b", "__consumer_offsets", "."):
        await session.create(f"/{name}x", bytes(range(256)))
        assert (await session.get(f"/{name}x", _nothing()))[0] == bytes(range(256))


async def test_ephemeral_node_has_no_children(session: Coordination) -> None:
    """A node cannot be created below an ephemeral one, which could not end before its children."""
    await session.create("/mine", ephemeral=True)
    with pytest.raises(NoChildrenForEphemerals):
        await session.create("/mine/child")
    assert await session.children("/mine") == []
