"""The embedded tree on disk: what is acknowledged survives, and what is damaged is refused."""

import asyncio
import errno
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.base.errors import StorageError
from ottla.base.rng import SeededRng
from ottla.cluster.zk import journal
from ottla.cluster.zk.embedded import EmbeddedSession, EmbeddedTree
from ottla.cluster.zk.port import (
    ConnectionSuspended,
    Create,
    Delete,
    NodeExists,
    SessionLost,
    SessionState,
    SetData,
)
from ottla.testing.sim.faults import PowerLoss
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.loop import SimLoop, VirtualClock

DIRECTORY = "/data/coordination"


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """A simulated loop."""
    with SimLoop(SeededRng(1)) as made:
        yield made


def open_tree(files: SimFileSystem, loop: SimLoop) -> EmbeddedTree:
    """Open the tree of the test's directory."""
    return EmbeddedTree(files, VirtualClock(loop), DIRECTORY)


async def contents(session: EmbeddedSession, path: str = "/") -> dict[str, bytes]:
    """Read a whole tree."""
    found = {path: (await session.get(path))[0]}
    for name in await session.children(path):
        found |= await contents(session, f"{path.rstrip('/')}/{name}")
    return found


def names_in(files: SimFileSystem, prefix: str = journal.JOURNAL_PREFIX) -> list[str]:
    """Return the journals on disk."""
    return [name for name in files.list(DIRECTORY) if name.startswith(prefix)]


# -- power --------------------------------------------------------------------------------------


async def write_steps(session: EmbeddedSession, acknowledged: list[dict[str, bytes]]) -> None:
    """Change the tree step by step; note after each what it must hold from now on."""
    state = {"/": b""}
    for step in range(14):
        path = f"/n{step % 5}"
        if path not in state:
            await session.multi([Create(path, b"%d" % step), Create(f"{path}/child")])
            state |= {path: b"%d" % step, f"{path}/child": b""}
        elif step % 3:
            await session.set(path, b"%d" % step * 400)
            state = state | {path: b"%d" % step * 400}
        else:
            await session.multi([Delete(f"{path}/child"), Delete(path)])
            state = {key: data for key, data in state.items() if not key.startswith(path)}
        acknowledged.append(dict(state))
        if step == 7:
            await session.create("/ephemeral", ephemeral=True)


@pytest.mark.parametrize("journal_bytes", [journal.JOURNAL_BYTES_MIN, 1500])
def test_power_loss_at_any_change_keeps_what_was_acknowledged(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch, journal_bytes: int
) -> None:
    """Wherever power goes, snapshots included, the last acknowledged state is found, or the next."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", journal_bytes)
    reference: list[dict[str, bytes]] = [{"/": b""}]
    files = SimFileSystem()
    loop.run(write_steps(open_tree(files, loop).session(), reference))
    changes = files.faults.changes_count
    assert (len(names_in(files, journal.SNAPSHOT)) > 0) is (journal_bytes == 1500)
    for change in range(1, changes + 1):
        for seed in range(3):
            files = SimFileSystem()
            files.faults.lose_power_at(change)
            acknowledged: list[dict[str, bytes]] = []
            with SimLoop(SeededRng(1)) as life, suppress(PowerLoss):
                life.run(write_steps(open_tree(files, life).session(), acknowledged))
            found_files = files.power_loss(SeededRng(seed))
            found = loop.run(contents(open_tree(found_files, loop).session()))
            done = len(acknowledged)
            assert found in reference[done : done + 2], (change, seed)


def test_a_tree_goes_on_after_every_loss_of_power(loop: SimLoop) -> None:
    """Many lives in a row lose nothing, and later ones have higher transaction ids."""
    files, expected, zxids = SimFileSystem(), {"/": b""}, [0]

    async def live(number: int) -> None:
        session = open_tree(files, loop).session()
        assert await contents(session) == expected
        await session.create(f"/life{number}", b"x")
        expected[f"/life{number}"] = b"x"
        await session.create("/broker", ephemeral=True)
        stat = await session.exists("/broker")
        assert stat is not None
        zxids.append(stat.czxid)

    for number in range(20):
        loop.run(live(number))
        files = files.power_loss(SeededRng(number))
    assert zxids == sorted(set(zxids))


def test_nothing_is_seen_or_announced_before_it_is_durable(loop: SimLoop) -> None:
    """Readers and watches wait for the disk: what they were told cannot be taken back."""
    files = SimFileSystem()
    tree = open_tree(files, loop)
    writer, reader = tree.session(), tree.session()
    told: list[str] = []

    async def main() -> None:
        await reader.exists("/a", told.append)
        writing = asyncio.create_task(writer.create("/a"))
        await asyncio.sleep(0)
        reading = asyncio.create_task(reader.exists("/a"))
        await asyncio.sleep(0)
        assert (told, writing.done(), reading.done()) == ([], False, False)
        await writing
        assert await reading is not None
        await asyncio.sleep(0)
        assert told == ["/a"]

    loop.run(main())


def test_queued_changes_share_a_sync(loop: SimLoop) -> None:
    """Fifty topics at once cost two syncs, not fifty."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()

    async def main() -> int:
        await session.create("/topics")
        before = files.faults.changes_count
        await asyncio.gather(*(session.create(f"/topics/{number}") for number in range(50)))
        return files.faults.changes_count - before

    # Each batch is an append and a sync.
    assert loop.run(main()) <= 4


def test_ephemeral_nodes_cost_no_sync(loop: SimLoop) -> None:
    """They cannot outlive the process, so the disk is not asked."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()

    async def main() -> None:
        before = files.faults.changes_count
        await session.create("/broker", b"1", ephemeral=True)
        await session.set("/broker", b"2")
        await session.delete("/broker")
        assert files.faults.changes_count == before

    loop.run(main())


def test_ephemeral_nodes_are_gone_after_a_restart(loop: SimLoop) -> None:
    """Clean or not: their sessions were in the process. Sequence numbers go on."""
    files = SimFileSystem()

    async def first() -> None:
        tree = open_tree(files, loop)
        session = tree.session()
        await session.create("/e", ephemeral=True)
        await session.create("/n")
        await session.create("/n/s_", ephemeral=True, sequential=True)
        await session.create("/kept")
        await tree.close()

    async def second() -> None:
        session = open_tree(files, loop).session()
        assert await contents(session) == {"/": b"", "/n": b"", "/kept": b""}
        assert await session.create("/n/s_", sequential=True) == "/n/s_0000000001"

    loop.run(first())
    files = files.kill()
    loop.run(second())


# -- snapshots ----------------------------------------------------------------------------------


def test_a_long_journal_is_replaced_by_a_snapshot(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk holds what the tree holds, not its history."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 2000)
    files = SimFileSystem()

    async def main() -> dict[str, bytes]:
        tree = open_tree(files, loop)
        session = tree.session()
        await session.create("/a")
        for number in range(300):
            await session.set("/a", b"%d" % number)
        found = await contents(session)
        await tree.close()
        return found

    before = loop.run(main())
    assert sum(files.size(f"{DIRECTORY}/{name}") for name in files.list(DIRECTORY)) < 6000
    assert len(names_in(files)) <= 2
    assert loop.run(contents(open_tree(files, loop).session())) == before


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_snapshot_that_lacks_a_descriptor_is_postponed(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """The tree goes on with its journals, and nothing is lost."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 2000)
    files = SimFileSystem()
    files.faults.fail("replace", error=error, times=2)
    failures: list[StorageError] = []

    async def main() -> dict[str, bytes]:
        tree = open_tree(files, loop)
        tree.on_failure = failures.append
        session = tree.session()
        await session.create("/a")
        for number in range(300):
            await session.set("/a", b"%d" % number)
        found = await contents(session)
        await tree.close()
        return found

    before = loop.run(main())
    assert failures == []
    assert len(names_in(files)) <= 2
    assert loop.run(contents(open_tree(files, loop).session())) == before


# -- damage -------------------------------------------------------------------------------------


def journalled(loop: SimLoop, steps: int = 5) -> SimFileSystem:
    """Return the disk of a tree that was closed cleanly after some changes."""
    files = SimFileSystem()

    async def main() -> None:
        tree = open_tree(files, loop)
        session = tree.session()
        for number in range(steps):
            await session.create(f"/n{number}", b"some data")
        await tree.close()

    loop.run(main())
    return files


def test_damage_before_acknowledged_changes_is_refused_with_advice(loop: SimLoop) -> None:
    """Cutting there would silently lose topics: the reader is told where, and what the choices are."""
    files = journalled(loop)
    path = f"{DIRECTORY}/{journal.JOURNAL_PREFIX}0"
    files.damage(path, 30)
    with pytest.raises(
        StorageError, match=r"journal.0 is damaged at byte 8.*backup.*truncate -s 8"
    ):
        open_tree(files, loop)


def test_a_torn_end_is_cut_off(loop: SimLoop) -> None:
    """A batch that power cut short was never acknowledged; the next one is written in its place."""
    whole = journalled(loop, steps=4).read(f"{DIRECTORY}/{journal.JOURNAL_PREFIX}0")
    for size in range(len(whole) - 60, len(whole)):
        files = journalled(loop, steps=4)
        files.open(f"{DIRECTORY}/{journal.JOURNAL_PREFIX}0").truncate(size)

        async def main(files: SimFileSystem = files) -> None:
            session = open_tree(files, loop).session()
            names = await session.children("/")
            assert names in ([f"n{number}" for number in range(count)] for count in (2, 3, 4))
            await session.create("/more")

        loop.run(main())
        found = loop.run(contents(open_tree(files.kill(), loop).session()))
        assert "/more" in found


def test_a_damaged_snapshot_is_refused_with_advice(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the snapshot the list of topics is gone: starting empty must be a decision."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 50)
    files = journalled(loop)
    files.damage(f"{DIRECTORY}/{journal.SNAPSHOT}", 40)
    with pytest.raises(StorageError, match=r"snapshot is damaged.*backup"):
        open_tree(files, loop)


def test_a_missing_journal_is_refused(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot says which journal follows it."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 50)
    files = journalled(loop)
    for name in names_in(files):
        files.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageError, match=r"journal.\d+ is missing"):
        open_tree(files, loop)


def test_a_directory_in_use_is_refused(loop: SimLoop) -> None:
    """Two processes on one tree would destroy it; after a refusal the holder goes on."""
    files = SimFileSystem()
    tree = open_tree(files, loop)
    with pytest.raises(StorageError, match="another process uses"):
        open_tree(files, loop)
    loop.run(tree.session().create("/a"))


# -- a disk that fails --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_after_a_failed_write_nothing_is_acknowledged(loop: SimLoop, operation: str) -> None:
    """A failed sync is never tried again: all who wait hear of it, and so does everyone later."""
    files = SimFileSystem()
    tree = open_tree(files, loop)
    session = tree.session()
    states: list[SessionState] = []
    session.on_session(states.append)

    async def main() -> None:
        await session.create("/safe")
        files.faults.fail(operation)
        attempts = [session.create("/a"), session.create("/b"), session.exists("/a")]
        results = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(result) for result in results] == [StorageError] * 3
        with pytest.raises(StorageError, match="acknowledged changes are safe"):
            await session.get("/safe")
        await asyncio.sleep(0)
        assert states == [SessionState.SUSPENDED]

    loop.run(main())
    found = loop.run(contents(open_tree(files.kill(), loop).session()))
    assert "/safe" in found


def test_a_tree_on_a_full_disk_closes_and_gives_the_directory_free(loop: SimLoop) -> None:
    """Only ephemeral nodes are unwritten then: nobody needs to hear of it, and the lock must go."""
    files = SimFileSystem()

    async def main() -> None:
        tree = open_tree(files, loop)
        session = tree.session()
        await session.create("/kept")
        await session.create("/broker", ephemeral=True)
        files.faults.fail("append", times=-1)
        await tree.close()
        await tree.close()

    loop.run(main())
    assert "/kept" in loop.run(contents(open_tree(files, loop).session()))


def test_a_batch_whose_sync_failed_is_no_hole_later(loop: SimLoop) -> None:
    """After a restart it counts, so it is made durable before anything is written behind it."""
    for seed in range(20):
        files = SimFileSystem()
        tree = open_tree(files, loop)

        async def fail(tree: EmbeddedTree = tree, files: SimFileSystem = files) -> None:
            session = tree.session()
            await session.create("/safe")
            files.faults.fail("sync")
            with pytest.raises(StorageError):
                await session.create("/in-doubt")

        loop.run(fail())
        files = files.kill()
        loop.run(open_tree(files, loop).session().create("/later"))
        files = files.power_loss(SeededRng(seed))
        found = loop.run(contents(open_tree(files, loop).session()))
        assert set(found) == {"/", "/safe", "/in-doubt", "/later"}


# -- sessions -----------------------------------------------------------------------------------


def test_a_suspended_session_is_resumed_in_time_or_lost(loop: SimLoop) -> None:
    """SUSPENDED means stop acting; watches that fired meanwhile are told on return."""
    tree = EmbeddedTree(SimFileSystem(), VirtualClock(loop))
    session, other = tree.session(timeout_ms=6000), tree.session()
    states: list[SessionState] = []
    told: list[str] = []
    session.on_session(states.append)

    async def main() -> None:
        await session.create("/mine", ephemeral=True)
        await session.exists("/news", told.append)
        session.suspend()
        with pytest.raises(ConnectionSuspended):
            await session.get("/mine")
        await asyncio.sleep(5)
        await other.create("/news")
        assert told == []
        session.resume()
        await asyncio.sleep(0)
        assert told == ["/news"]
        session.suspend()
        await asyncio.sleep(5.9)
        assert await other.exists("/mine") is not None
        await asyncio.sleep(0.2)
        assert await other.exists("/mine") is None
        session.resume()
        with pytest.raises(SessionLost):
            await session.exists("/")
        suspended, lost = SessionState.SUSPENDED, SessionState.LOST
        assert states == [suspended, SessionState.CONNECTED, suspended, lost]

    loop.run(main())


def test_an_operation_under_way_at_a_suspension_is_in_doubt(loop: SimLoop) -> None:
    """It may have happened: the caller must read before it acts."""
    tree = open_tree(SimFileSystem(), loop)
    session, other = tree.session(), tree.session()

    async def main() -> None:
        writing = asyncio.create_task(session.create("/a"))
        await asyncio.sleep(0)
        session.suspend()
        with pytest.raises(ConnectionSuspended):
            await writing
        assert await other.exists("/a") is not None

    loop.run(main())


def test_a_whole_topic_is_one_quick_transaction(loop: SimLoop) -> None:
    """A thousand partitions, each with its state, are one batch and one sync."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()
    operations: list[Create | SetData] = [Create("/t"), Create("/t/partitions")]
    for number in range(1000):
        path = f"/t/partitions/{number}"
        operations += [Create(path), Create(f"{path}/state", b"{}" * 40)]

    async def main() -> int:
        before = files.faults.changes_count
        await session.multi(operations)
        return files.faults.changes_count - before

    assert loop.run(main()) == 2
    assert len(loop.run(session.children("/t/partitions"))) == 1000


def test_refusals_wait_for_what_they_rest_on(loop: SimLoop) -> None:
    """NodeExists is an answer about a durable node."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()

    async def main() -> None:
        writing = asyncio.create_task(session.create("/a"))
        await asyncio.sleep(0)
        with pytest.raises(NodeExists):
            await session.create("/a")
        found = open_tree(files.power_loss(SeededRng(0)), loop).session()
        assert await found.exists("/a") is not None
        await writing

    loop.run(main())


def test_a_bug_in_the_journal_fails_the_tree_and_keeps_nobody_waiting(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is not known: nothing more is acknowledged, and the owner hears of it."""
    tree = open_tree(SimFileSystem(), loop)
    session = tree.session()
    heard: list[StorageError] = []
    tree.on_failure = heard.append

    def fail(*_: object) -> None:
        raise LookupError("a bug")

    async def main() -> None:
        await session.create("/safe")
        monkeypatch.setattr("ottla.cluster.zk.journal.Journal.write", fail)
        attempts = [session.create("/a"), session.create("/b")]
        async with asyncio.timeout(60):
            results = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(result) for result in results] == [StorageError] * 2
        with pytest.raises(StorageError):
            await session.exists("/a")

    loop.run(main())
    assert len(heard) == 1
    assert tree.tasks.failures == {"once": 1}
