"""The embedded tree on disk: acknowledged changes survive, and damage is rejected."""

import asyncio
import errno
import struct
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
from ottla.cluster.zk.tree import Tree
from ottla.testing.sim.faults import PowerLoss
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.loop import SimLoop, VirtualClock
from ottla.wire.records.batch import crc32c

DIRECTORY = "/data/coordination"


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """Return a simulated loop."""
    with SimLoop(SeededRng(1)) as sim_loop:
        yield sim_loop


def open_tree(files: SimFileSystem, loop: SimLoop) -> EmbeddedTree:
    """Open the tree of the test's directory."""
    return EmbeddedTree(files, VirtualClock(loop), DIRECTORY)


async def contents(session: EmbeddedSession, path: str = "/") -> dict[str, bytes]:
    """Read a whole tree."""
    entries = {path: (await session.get(path))[0]}
    for name in await session.children(path):
        entries |= await contents(session, f"{path.rstrip('/')}/{name}")
    return entries


def names_in(files: SimFileSystem, prefix: str = journal.JOURNAL_PREFIX) -> list[str]:
    """Return the journals on disk."""
    return [name for name in files.list(DIRECTORY) if name.startswith(prefix)]


# -- power --------------------------------------------------------------------------------------


async def write_steps(session: EmbeddedSession, acknowledged: list[dict[str, bytes]]) -> None:
    """Change the tree step by step; record after each step the content that must be kept from now
    on.
    """
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
def test_power_loss_at_any_write_keeps_acknowledged_changes(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch, journal_bytes: int
) -> None:
    """After a power loss at any write, snapshots included, the last acknowledged state or the next
    is read.
    """
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
            content = loop.run(contents(open_tree(found_files, loop).session()))
            done = len(acknowledged)
            assert content in reference[done : done + 2], (change, seed)


def test_tree_recovers_after_every_power_loss(loop: SimLoop) -> None:
    """Many restarts in a row lose nothing, and transaction ids keep increasing."""
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


def test_changes_are_visible_only_when_durable(loop: SimLoop) -> None:
    """Readers and watches wait for the disk, because their results cannot be undone."""
    files = SimFileSystem()
    tree = open_tree(files, loop)
    writer, reader = tree.session(), tree.session()
    changes: list[str] = []

    async def main() -> None:
        await reader.exists("/a", changes.append)
        writing = asyncio.create_task(writer.create("/a"))
        await asyncio.sleep(0)
        reading = asyncio.create_task(reader.exists("/a"))
        await asyncio.sleep(0)
        assert (changes, writing.done(), reading.done()) == ([], False, False)
        await writing
        assert await reading is not None
        await asyncio.sleep(0)
        assert changes == ["/a"]

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
    """They cannot outlive the process, so they are not written to disk."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()

    async def main() -> None:
        before = files.faults.changes_count
        await session.create("/broker", b"1", ephemeral=True)
        await session.set("/broker", b"2")
        await session.delete("/broker")
        assert files.faults.changes_count == before

    loop.run(main())


def test_ephemeral_nodes_are_deleted_by_a_restart(loop: SimLoop) -> None:
    """Their sessions end with the process, after a clean shutdown or not. Sequence numbers
    continue.
    """
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
    """The disk has the content of the tree, not its history."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 2000)
    files = SimFileSystem()

    async def main() -> dict[str, bytes]:
        tree = open_tree(files, loop)
        session = tree.session()
        await session.create("/a")
        for number in range(300):
            await session.set("/a", b"%d" % number)
        content = await contents(session)
        await tree.close()
        return content

    before = loop.run(main())
    assert sum(files.size(f"{DIRECTORY}/{name}") for name in files.list(DIRECTORY)) < 6000
    assert len(names_in(files)) <= 2
    assert loop.run(contents(open_tree(files, loop).session())) == before


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_snapshot_without_a_free_descriptor_is_postponed(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """The tree continues with its journals, and nothing is lost."""
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
        content = await contents(session)
        await tree.close()
        return content

    before = loop.run(main())
    assert failures == []
    assert len(names_in(files)) <= 2
    assert loop.run(contents(open_tree(files, loop).session())) == before


@pytest.mark.parametrize("operation", ["open", "sync_directory"])
def test_next_journal_without_a_free_descriptor_is_postponed(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """The tree continues in its journal until the next one can be created, and nothing is lost."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 2000)
    files = SimFileSystem()
    failures: list[StorageError] = []

    async def main() -> dict[str, bytes]:
        tree = open_tree(files, loop)
        tree.on_failure = failures.append
        session = tree.session()
        await session.create("/a")
        files.faults.fail(operation, error=errno.EMFILE, path="coordination", times=3)
        for number in range(300):
            await session.set("/a", b"%d" % number)
        return await contents(session)

    before = loop.run(main())
    assert failures == []
    assert names_in(files, journal.SNAPSHOT)
    assert loop.run(contents(open_tree(files.kill(), loop).session())) == before


def test_journal_that_could_not_be_created_leaves_no_file(loop: SimLoop) -> None:
    """Until the next journal is created, the last batch of the current one may be unfinished."""
    files = SimFileSystem()
    loop.run(open_tree(files, loop).session().create("/a"))
    again = files.kill()
    opened = journal.Journal(again, DIRECTORY)
    opened.load(Tree())
    again.faults.fail("sync_directory", error=errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        opened.begin_next()
    assert names_in(again) == [f"{journal.JOURNAL_PREFIX}0"]
    assert opened.begin_next() == 1


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


def test_files_without_times_are_read(loop: SimLoop) -> None:
    """Earlier versions wrote none, neither in the snapshot nor in the journal."""
    files = SimFileSystem()
    files.make_directories(DIRECTORY)
    node = struct.pack(">HIqqqqq", 2, 1, 7, 7, 0, 0, 0) + b"/a" + b"1"
    root = struct.pack(">HIqqqqq", 1, 0, 0, 0, 0, 1, 0) + b"/"
    nodes = struct.pack(">qQQ", 7, 0, 2) + root + node
    head = struct.pack(">8sIQ", b"OTLSNAP1", crc32c(nodes), len(nodes))
    files.replace(f"{DIRECTORY}/{journal.SNAPSHOT}", head + nodes)
    change = struct.pack(">qI", 8, 1) + struct.pack(">BHIq", 1, 2, 1, 0) + b"/b" + b"2"
    frame = struct.pack(">4sII", b"\xf5OTL", len(change), crc32c(change)) + change
    files.replace(f"{DIRECTORY}/{journal.JOURNAL_PREFIX}0", journal.JOURNAL_MAGIC + frame)

    async def scenario() -> None:
        tree = open_tree(files, loop)
        session = tree.session()
        assert await contents(session) == {"/": b"", "/a": b"1", "/b": b"2"}
        await session.set("/b", b"3")
        now = VirtualClock(loop).time_ms()
        times = {path: (node.ctime_ms, node.mtime_ms) for path, node in tree.nodes.items()}
        assert times == {"/": (0, 0), "/a": (0, 0), "/b": (0, now)}
        await tree.close()

    loop.run_until_complete(scenario())


def test_damage_before_acknowledged_changes_is_an_error_with_advice(loop: SimLoop) -> None:
    """Truncation would silently lose topics: the error has the position and the choices."""
    files = journalled(loop)
    path = f"{DIRECTORY}/{journal.JOURNAL_PREFIX}0"
    files.damage(path, 30)
    with pytest.raises(
        StorageError, match=r"journal.0 is damaged at byte 8.*backup.*truncate -s 8"
    ):
        open_tree(files, loop)


def test_torn_tail_is_truncated(loop: SimLoop) -> None:
    """A batch that a power loss truncated was never acknowledged; the next one is written in its
    place.
    """
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
        content = loop.run(contents(open_tree(files.kill(), loop).session()))
        assert "/more" in content


def test_damaged_snapshot_is_an_error_with_advice(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the snapshot the list of topics is lost: an operator has to decide to start empty."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 50)
    files = journalled(loop)
    files.damage(f"{DIRECTORY}/{journal.SNAPSHOT}", 40)
    with pytest.raises(StorageError, match=r"snapshot is damaged.*backup"):
        open_tree(files, loop)


def test_missing_journal_is_an_error(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot names the journal that follows it."""
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MIN", 50)
    files = journalled(loop)
    for name in names_in(files):
        files.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageError, match=r"journal.\d+ is missing"):
        open_tree(files, loop)


def test_locked_directory_is_an_error(loop: SimLoop) -> None:
    """Two processes on one tree would destroy it; after the error the holder continues."""
    files = SimFileSystem()
    tree = open_tree(files, loop)
    with pytest.raises(StorageError, match="another process uses"):
        open_tree(files, loop)
    loop.run(tree.session().create("/a"))


# -- a disk that fails --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_nothing_is_acknowledged_after_a_failed_write(loop: SimLoop, operation: str) -> None:
    """A failed sync is never retried: all pending and all later operations raise it."""
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
    content = loop.run(contents(open_tree(files.kill(), loop).session()))
    assert "/safe" in content


def test_tree_on_a_full_disk_closes_and_releases_the_lock(loop: SimLoop) -> None:
    """Only ephemeral nodes are unwritten then: no error is reported, and the lock is released."""
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


def test_batch_with_a_failed_sync_is_made_durable_on_restart(loop: SimLoop) -> None:
    """After a restart the batch counts, so it is made durable before further writes."""
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
        content = loop.run(contents(open_tree(files, loop).session()))
        assert set(content) == {"/", "/safe", "/in-doubt", "/later"}


# -- sessions -----------------------------------------------------------------------------------


def test_a_suspended_session_is_resumed_in_time_or_lost(loop: SimLoop) -> None:
    """SUSPENDED means to stop acting; watches that fired during that time are called on return."""
    tree = EmbeddedTree(SimFileSystem(), VirtualClock(loop))
    session, other = tree.session(timeout_ms=6000), tree.session()
    states: list[SessionState] = []
    changes: list[str] = []
    session.on_session(states.append)

    async def main() -> None:
        await session.create("/mine", ephemeral=True)
        await session.exists("/news", changes.append)
        session.suspend()
        with pytest.raises(ConnectionSuspended):
            await session.get("/mine")
        await asyncio.sleep(5)
        await other.create("/news")
        assert changes == []
        session.resume()
        await asyncio.sleep(0)
        assert changes == ["/news"]
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


def test_operation_during_a_suspension_has_an_unknown_result(loop: SimLoop) -> None:
    """It may have been executed, so the caller has to read before it acts."""
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


def test_entire_topic_is_one_fast_transaction(loop: SimLoop) -> None:
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


def test_errors_wait_for_the_changes_they_depend_on(loop: SimLoop) -> None:
    """The error NodeExists reports a durable node."""
    files = SimFileSystem()
    session = open_tree(files, loop).session()

    async def main() -> None:
        writing = asyncio.create_task(session.create("/a"))
        await asyncio.sleep(0)
        with pytest.raises(NodeExists):
            await session.create("/a")
        actual = open_tree(files.power_loss(SeededRng(0)), loop).session()
        assert await actual.exists("/a") is not None
        await writing

    loop.run(main())


def test_exception_in_the_journal_fails_the_tree_and_all_waiters(
    loop: SimLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The written content is unknown: nothing more is acknowledged, and the owner gets the error."""
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
