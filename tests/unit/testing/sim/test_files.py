"""The simulated disk: the content after a power loss, and calls that fail."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.rng import SeededRng
from ottla.testing.sim.disk import Disk
from ottla.testing.sim.faults import PowerLoss
from ottla.testing.sim.files import SimFileSystem

SEEDS = range(60)


def after_power_loss(seed: int, work: Callable[[SimFileSystem], None]) -> SimFileSystem:
    """Do some work in a durable directory `d`, lose power, and return the content."""
    files = SimFileSystem()
    files.make_directories("d")
    files.sync_directory("/")
    work(files)
    return files.power_loss(SeededRng(seed))


def test_synced_bytes_of_a_synced_name_survive() -> None:
    """After both syncs, the content is guaranteed."""

    def work(files: SimFileSystem) -> None:
        file = files.open("d/f", create=True)
        file.append(b"durable")
        file.sync()
        files.sync_directory("d")
        file.append(b" and not")

    for seed in SEEDS:
        assert after_power_loss(seed, work).read("d/f").startswith(b"durable")


def test_unsynced_bytes_may_survive_in_any_part() -> None:
    """Over many seeds the tail is complete, torn, absent, or has holes."""
    tail = bytes(range(1, 255)) * 12

    def work(files: SimFileSystem) -> None:
        file = files.open("d/f", create=True)
        file.sync()
        files.sync_directory("d")
        file.append(tail[:1000])
        file.append(tail[1000:])

    records = {after_power_loss(seed, work).read("d/f") for seed in range(200)}
    assert {b"", tail} < records
    assert any(0 < len(data) < len(tail) and tail.startswith(data) for data in records)
    holes = [data for data in records if not tail.startswith(data)]
    assert holes
    for data in records:
        for position in range(0, len(data), 512):
            sector, written = data[position : position + 512], tail[position : position + 512]
            # Every sector has the written bytes up to some byte, or zeros.
            assert written.startswith(sector.rstrip(b"\0"))


def test_unsynced_names_may_vanish() -> None:
    """A file in an unsynced directory exists or not; if it exists, it has its synced bytes."""

    def work(files: SimFileSystem) -> None:
        file = files.open("d/f", create=True)
        file.append(b"x")
        file.sync()

    results = [after_power_loss(seed, work) for seed in SEEDS]
    there = [files.read("d/f") for files in results if files.exists("d/f")]
    assert 0 < len(there) < len(results)
    assert set(there) == {b"x"}


def test_unsynced_rename_is_atomic() -> None:
    """The file has exactly one of its two names, and the replaced file is old or new."""

    def work(files: SimFileSystem) -> None:
        for name in ("old", "new"):
            file = files.open(f"d/{name}", create=True)
            file.append(name.encode())
            file.sync()
        files.sync_directory("d")
        files.rename("d/new", "d/old")

    results = set()
    for seed in SEEDS:
        files = after_power_loss(seed, work)
        results.add((tuple(files.list("d")), files.read("d/old")))
    assert results == {(("new", "old"), b"old"), (("old",), b"new")}


def test_unsynced_removal_may_be_undone() -> None:
    """A removed file is gone for good only after a sync of its directory."""

    def work(files: SimFileSystem) -> None:
        for name in ("a", "b"):
            files.replace(f"d/{name}", b"x")
        files.remove("d/a")
        files.sync_directory("d")
        files.remove("d/b")

    results = {tuple(after_power_loss(seed, work).list("d")) for seed in SEEDS}
    assert results == {(), ("b",)}


def test_replace_is_atomic_on_power_loss() -> None:
    """After a power loss at any of its steps the file has the old content or the new one."""
    seen = set()
    for step in range(1, 12):
        for seed in range(20):
            files = SimFileSystem()
            files.make_directories("d")
            files.sync_directory("/")
            files.replace("d/f", b"old")
            files.faults.lose_power_at(step)
            try:
                files.replace("d/f", b"new")
                acknowledged = True
            except PowerLoss:
                acknowledged = False
            content = files.power_loss(SeededRng(seed)).read("d/f")
            assert content == b"new" if acknowledged else content in (b"old", b"new")
            seen.add((acknowledged, content))
    assert len(seen) == 3


def test_failed_sync_drops_dirty_bytes() -> None:
    """Linux marks the pages clean: a second sync succeeds without writing them."""

    def work(files: SimFileSystem) -> None:
        file = files.open("d/f", create=True)
        files.sync_directory("d")
        file.append(b"lost")
        files.faults.fail("sync")
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        assert file.read_at(0, 9) == b"lost"
        file.append(b"kept")
        file.sync()

    for seed in SEEDS:
        assert after_power_loss(seed, work).read("d/f") == b"\0\0\0\0kept"


def test_the_nth_call_of_an_operation_fails() -> None:
    """Faults count calls, can be limited to a path, and can be permanent."""
    files = SimFileSystem()
    one, other = files.open("/one", create=True), files.open("/other", create=True)
    files.faults.fail("append", nth=2, error=errno.ENOSPC, path="one")
    one.append(b"1234")
    other.append(b"1234")
    with pytest.raises(OSError) as refusal:
        one.append(b"5678")
    assert refusal.value.errno == errno.ENOSPC
    # Half of it was written before the error.
    assert one.read_at(0, 99) == b"123456"
    one.append(b"9")
    files.faults.fail("sync", times=-1)
    for _ in range(3):
        with pytest.raises(OSError):
            other.sync()


def test_full_disk_writes_what_fits() -> None:
    """A short write is followed by ENOSPC, and a removal frees space."""
    files = SimFileSystem(Disk(capacity_bytes=10))
    file = files.open("/f", create=True)
    file.append(b"12345678")
    assert (files.free_bytes("/"), files.total_bytes("/")) == (2, 10)
    with pytest.raises(OSError) as refusal:
        file.append(b"abcd")
    assert refusal.value.errno == errno.ENOSPC
    assert file.size() == 10
    files.remove("/f")
    files.open("/g", create=True).append(b"1234567890")


def test_killed_process_cannot_write() -> None:
    """Every operation on a handle of an earlier process fails, and its locks are released."""
    files = SimFileSystem()
    files.lock("/lock")
    file = files.open("/f", create=True)
    file.append(b"written")
    with pytest.raises(BlockingIOError):
        files.lock("/lock")
    next_life = files.kill()
    for attempt in (lambda: file.append(b"x"), file.sync, lambda: files.replace("/f", b"x")):
        with pytest.raises(OSError, match="the process was killed"):
            attempt()
    assert next_life.read("/f") == b"written"
    next_life.lock("/lock").release()
    next_life.lock("/lock").release()


def test_damage_is_durable() -> None:
    """A flipped bit stays flipped."""
    files = SimFileSystem()
    files.replace("/f", b"abc")
    files.damage("/f", 1, 0x20)
    assert files.read("/f") == b"aBc"
    assert files.power_loss(SeededRng(0)).read("/f") == b"aBc"


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "e/a", "e", "d"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), NAMES),
        st.tuples(st.just("append"), NAMES, st.binary(max_size=9)),
        st.tuples(st.just("write_at"), NAMES, st.integers(0, 12), st.binary(max_size=9)),
        st.tuples(st.just("truncate"), NAMES, st.integers(0, 12)),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("remove_tree"), NAMES),
        st.tuples(st.just("make_directories"), NAMES),
        st.tuples(st.just("replace"), NAMES, st.binary(max_size=9)),
        st.tuples(st.just("list"), NAMES),
        st.tuples(st.just("size"), NAMES),
        st.tuples(st.just("sync_directory"), NAMES),
    ),
    max_size=25,
)


def _do(files: FileSystem, root: str, operation: str, *arguments: object) -> object:
    path = f"{root}/{arguments[0]}"
    rest = [f"{root}/{item}" if operation == "rename" else item for item in arguments[1:]]
    try:
        if operation in ("append", "write_at", "truncate"):
            file = files.open(path)
            getattr(file, operation)(*rest)
            content = file.read_at(0, 99)
            file.close()
            return content
        if operation == "open":
            opened = files.open(path, create=True)
            opened.close()
            return None
        return getattr(files, operation)(path, *rest)
    except OSError as error:
        return error.errno


@given(steps=STEPS)
@example(steps=[("make_directories", "d/b"), ("open", "d/a"), ("rename", "d/a", "d")])
def test_simulated_disk_behaves_like_the_real_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, ...]]
) -> None:
    """The same calls return the same results, raise the same errors, and leave the same files."""
    real_root = str(tmp_path_factory.mktemp("real"))
    real, sim = RealFileSystem(), SimFileSystem()
    sim.make_directories("/root")
    for step in steps:
        expected = _do(real, real_root, *step)
        if step[0] == "size" and real.is_directory(f"{real_root}/{step[1]}"):
            # The size of a directory depends on the file system.
            continue
        assert _do(sim, "/root", *step) == expected, step
    assert _tree(sim, "/root") == {
        str(path.relative_to(real_root)): path.read_bytes() if path.is_file() else None
        for path in Path(real_root).rglob("*")
    }


def _tree(files: SimFileSystem, root: str) -> dict[str, bytes | None]:
    result: dict[str, bytes | None] = {}
    for name in files.list(root):
        path = f"{root}/{name}"
        if files.is_directory(path):
            result[name] = None
            result |= {f"{name}/{key}": data for key, data in _tree(files, path).items()}
        else:
            result[name] = files.read(path)
    return result
