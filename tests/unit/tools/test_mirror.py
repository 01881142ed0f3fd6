"""`ottla topic copy`: records, positions and offsets of groups."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from ottla.base.errors import OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.errors import TransactionAborted
from ottla.client.producer.producer import Producer
from ottla.client.transport import EndOfPartition, RecordConsumer
from ottla.streams.pipelines.translation import Point
from ottla.testing import Cluster
from ottla.tools.mirror import routes
from ottla.tools.mirror.copying import Mirror, MirrorSettings
from ottla.tools.mirror.routes import Points, Route
from ottla.tools.positions import Anchor, Position
from ottla.tools.signals import StopSignals


def produce(cluster: Cluster, topic: str, values: Sequence[bytes], **options: Any) -> None:
    """Write records to a topic."""
    # Before its first record, librdkafka takes half a second to begin with idempotence.
    settings = {"linger_ms": 50, "enable_idempotence": False}
    with Producer(bootstrap_servers=cluster.bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value, **options)


def read_all(cluster: Cluster, topic: str, partition: int = 0) -> list[bytes | None]:
    """Return the committed values of a partition."""
    return [row.value for row in records_of(cluster, topic, partition)]


def records_of(cluster: Cluster, topic: str, partition: int = 0) -> list[Any]:
    """Return the committed records of a partition."""
    settings = {"isolation.level": "read_committed", "fetch.wait.max.ms": "10"}
    values: list[Any] = []
    with RecordConsumer(cluster.bootstrap, settings=settings) as consumer:
        consumer.assign({(topic, partition): 0})
        while True:
            for event in consumer.poll(0.1, limit=100):
                if isinstance(event, EndOfPartition):
                    return values
                values.append(event)


def test_copy_keeps_partition_key_headers_and_timestamp(run: Any, ottla_cluster: Cluster) -> None:
    """A missing target is created with the partitions and the configuration of the source."""
    run("topic", "create", "a", "--partitions", "3", "-c", "retention.ms=-1")
    produce(ottla_cluster, "a", [b"x"], key=b"k", partition=2, timestamp=1_000_000, headers=[("h", b"1")])  # fmt: skip
    produce(ottla_cluster, "a", [None], key=b"k", partition=1, timestamp=2_000_000)  # type: ignore[list-item]
    done = run("topic", "copy", "a", "b")
    assert (done.code, done.out) == (0, b"Copied 2 records of a to b.\n")
    (record,) = records_of(ottla_cluster, "b", 2)
    assert (record.key, record.value, record.timestamp) == (b"k", b"x", 1_000_000)
    assert list(record.headers) == [("h", b"1")]
    assert records_of(ottla_cluster, "b", 1)[0].value is None
    config = {row["name"]: row["value"] for row in run("topic", "config", "b", "--output", "json").json}  # fmt: skip
    assert config["retention.ms"] == "-1"


@pytest.mark.parametrize("extra", [[], ["--exactly-once"]])
def test_second_copy_resumes_where_the_first_stopped(
    run: Any, ottla_cluster: Cluster, extra: list[str]
) -> None:
    """Each record is copied once, in both modes."""
    produce(ottla_cluster, "a", [b"1", b"2"])
    assert run("topic", "copy", "a", "b", "--output", "json", *extra).json["records"] == 2
    assert run("topic", "copy", "a", "b", "--output", "json", *extra).json["records"] == 0
    produce(ottla_cluster, "a", [b"3"])
    assert run("topic", "copy", "a", "b", "--output", "json", *extra).json["records"] == 1
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"3"]


def test_exactly_once_repeats_an_aborted_transaction(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of the aborted attempt are invisible, and the next attempt copies all of them."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    stored = Mirror._store
    attempts: list[int] = []

    def fail_once(self: Mirror, producer: Producer) -> None:
        stored(self, producer)
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise TransactionAborted("the coordinator aborted it")

    monkeypatch.setattr(Mirror, "_store", fail_once)
    with ottla_cluster.admin() as brokers, StopSignals() as stop:
        mirror = Mirror(
            brokers, brokers, [Route("a", "b")], MirrorSettings(exactly_once=True), print
        )
        mirror.run(stop, lambda _: None)
        assert mirror.copied == 3
        points = routes.read_points(brokers, Route("a", "b"))
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"3"]
    # The first attempt left three records and a marker before them.
    assert points == [Point(0, 3, 7)]


def test_without_transactions_the_interrupted_part_is_copied_again(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: no record is missing after a failure between records and points."""
    produce(ottla_cluster, "a", [b"1", b"2"])

    def fail(self: Mirror, producer: Producer) -> None:
        producer.flush()
        raise RuntimeError("killed here")

    with ottla_cluster.admin() as brokers, StopSignals() as stop:
        with monkeypatch.context() as patch:
            patch.setattr(Mirror, "_store", fail)
            broken = Mirror(brokers, brokers, [Route("a", "b")], MirrorSettings(), print)
            with pytest.raises(RuntimeError):
                broken.run(stop, lambda _: None)
        Mirror(brokers, brokers, [Route("a", "b")], MirrorSettings(), print).run(
            stop, lambda _: None
        )
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"1", b"2"]


def test_offsets_of_groups_are_translated(run: Any, ottla_cluster: Cluster) -> None:
    """A group that has read everything reads nothing twice in the copy."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    run("topic", "copy", "a", "b", "--exactly-once")
    produce(ottla_cluster, "a", [b"4"])
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(4)})
        offsets.commit_offsets(brokers, "late", {("a", 0): offsets.CommittedOffset(3)})
    done = run("topic", "copy", "a", "b", "--exactly-once", "--groups", "g", "--groups", "late", "--output", "json")  # fmt: skip
    assert done.json["groups"] == {"g": 1, "late": 1}
    with ottla_cluster.admin() as brokers:
        ends = {record.value: record.offset + 1 for record in records_of(ottla_cluster, "b")}
        assert offsets.committed_offsets(brokers, "g")["b", 0].offset == ends[b"4"]
        assert offsets.committed_offsets(brokers, "late")["b", 0].offset == ends[b"3"]


def test_offsets_of_groups_are_never_moved_backwards(run: Any, ottla_cluster: Cluster) -> None:
    """A group that is further in the copy keeps its offset."""
    produce(ottla_cluster, "a", [b"1", b"2"])
    run("topic", "copy", "a", "b")
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(2), ("b", 0): offsets.CommittedOffset(5)})  # fmt: skip
        run("topic", "copy", "a", "b", "--groups", "g")
        assert offsets.committed_offsets(brokers, "g")["b", 0].offset == 5


def test_deleted_records_are_reported(run: Any, ottla_cluster: Cluster) -> None:
    """Records that were deleted before they were copied are named on standard error."""
    produce(ottla_cluster, "a", [b"1"])
    run("topic", "copy", "a", "b")
    produce(ottla_cluster, "a", [b"2", b"3", b"4"])
    run("topic", "trim", "a", "--to", "3", "--yes")
    done = run("topic", "copy", "a", "b")
    assert "a-0: records 1 to 2 were deleted before they were copied." in done.errors
    assert read_all(ottla_cluster, "b") == [b"1", b"4"]


def test_target_with_fewer_partitions_is_refused(run: Any) -> None:
    """The sentence contains the command that adds them."""
    run("topic", "create", "a", "--partitions", "2")
    run("topic", "create", "b")
    done = run("topic", "copy", "a", "b")
    assert done.code == 1
    assert "--alter --topic b --partitions 2" in done.errors


@pytest.mark.parametrize("command_line", [["a"], ["a", "a"]])
def test_copy_onto_itself_is_refused(run: Any, command_line: list[str]) -> None:
    """The usage error names both remedies."""
    done = run("topic", "copy", *command_line)
    assert done.code == 2
    assert "--to" in done.errors


@pytest.mark.parametrize("target", [[], ["a"]])
def test_copy_onto_itself_by_another_address_is_refused(
    run: Any, ottla_cluster: Cluster, target: list[str]
) -> None:
    """Both addresses have the id of one cluster; nothing is copied."""
    produce(ottla_cluster, "a", [b"1"])
    done = run("topic", "copy", "a", *target, "--to", f"localhost:{ottla_cluster.port}")
    assert (done.code, done.out) == (2, b"")
    assert "is the cluster of the source" in done.errors
    assert ottla_cluster.topics() == ["a"]


def test_memory_of_points_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older points are thinned out; an offset is then translated to an earlier one."""
    monkeypatch.setattr(routes, "_POINTS_MAX", 10)
    points = Points(Point(0, number, 2 * number) for number in range(1000))
    assert points.next_offset(0) == 999
    translation = points.translation()
    assert translation.translate(0, 999) == 1998
    old = translation.translate(0, 500)
    assert old is not None and old <= 1000


class _Stop:
    """A request to stop that a test makes."""

    requested = False


def _following(
    mirror: Mirror, step: Callable[[Mirror, _Stop], None], *, seconds: float = 30.0
) -> None:
    """Run a mirror that follows, with a step of the test after each of its batches."""
    stop = _Stop()
    deadline = time.monotonic() + seconds

    def advance(_: int) -> None:
        assert time.monotonic() < deadline, "the mirror has not copied the records"
        step(mirror, stop)

    mirror.run(cast(StopSignals, stop), advance)


_FOLLOW = MirrorSettings(follow=True, interval_s=0.1, refresh_s=0.05)


def test_partition_that_is_added_while_a_mirror_follows(ottla_cluster: Cluster) -> None:
    """Its records are copied from the beginning, also if copying began at the end of the topic."""
    ottla_cluster.create_topic("src", partitions=1)
    ottla_cluster.create_topic("dst", partitions=1)
    notes: list[str] = []
    with ottla_cluster.admin() as brokers:

        def step(mirror: Mirror, stop: _Stop) -> None:
            if not notes:
                produce(ottla_cluster, "src", [b"0"], partition=0)
                topics.add_partitions(brokers, "src", 2)
                produce(ottla_cluster, "src", [b"1"], partition=1)
                notes.append("added")
            elif "add some with" in notes[-1]:
                topics.add_partitions(brokers, "dst", 2)
            stop.requested = mirror.copied == 2

        settings = replace(_FOLLOW, start=Position(Anchor.END))
        _following(Mirror(brokers, brokers, [Route("src", "dst")], settings, notes.append), step)
    # The target had too few partitions at first, which was reported once.
    assert [note.split(":")[0] for note in notes[1:]] == [
        "New partitions of src are not copied", "Copying src-1, too, from the beginning.",
    ]  # fmt: skip
    assert (read_all(ottla_cluster, "dst", 0), read_all(ottla_cluster, "dst", 1)) == ([b"0"], [b"1"])  # fmt: skip


def test_second_mirror_without_transactions_is_reported(ottla_cluster: Cluster) -> None:
    """The first one sees points that it did not write."""
    produce(ottla_cluster, "a", [b"1"])
    notes: list[str] = []
    others: list[str] = []
    with ottla_cluster.admin() as brokers:

        def stop_after_one(other: Mirror, stop: _Stop) -> None:
            stop.requested = other.copied == 1

        def step(mirror: Mirror, stop: _Stop) -> None:
            if mirror.copied == 1:
                # The second one starts after the first record, and copies the next one, too.
                other = Mirror(brokers, brokers, [Route("a", "b")], _FOLLOW, others.append)
                produce(ottla_cluster, "a", [b"2"])
                _following(other, stop_after_one)
            stop.requested = mirror.copied == 2

        _following(Mirror(brokers, brokers, [Route("a", "b")], _FOLLOW, notes.append), step)
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"2"]
    assert others == []
    (note,) = notes
    assert note.startswith("Another mirror copies a to b, too: records are copied twice.")


def test_mirror_with_transactions_fences_another_of_its_group(ottla_cluster: Cluster) -> None:
    """A second instance with other topics, but the same group, ends the first one."""
    produce(ottla_cluster, "a", [b"1"])
    produce(ottla_cluster, "c", [b"1"])
    settings = replace(_FOLLOW, exactly_once=True, identity="group")
    with ottla_cluster.admin() as brokers:

        def step(mirror: Mirror, stop: _Stop) -> None:
            if not mirror.copied or read_all(ottla_cluster, "a") != [b"1"]:
                return
            other = replace(settings, follow=False)
            both = [Route("a", "b"), Route("c", "d")]
            Mirror(brokers, brokers, both, other, print).run(
                cast(StopSignals, stop), lambda _: None
            )
            produce(ottla_cluster, "a", [b"2"])

        first = Mirror(brokers, brokers, [Route("a", "b")], settings, print)
        with pytest.raises(OttlaError, match=r"(?i)fenced|epoch"):
            _following(first, step)
    assert read_all(ottla_cluster, "b") == [b"1"]
    assert read_all(ottla_cluster, "d") == [b"1"]


@pytest.mark.parametrize(
    ("positions", "values"),
    [
        (["-o", "-2"], [b"3", b"4"]),
        (["-o", "1", "-o", "3"], [b"2", b"3"]),
        (["-o", "@3000", "-o", "@4000"], [b"3"]),
    ],
)
def test_copy_between_positions(
    run: Any, ottla_cluster: Cluster, positions: list[str], values: list[bytes]
) -> None:
    """The first -o is the start of partitions that were never copied, the second the end."""
    for number in range(1, 5):
        produce(ottla_cluster, "a", [b"%d" % number], timestamp=number * 1000)
    words = [word.replace("@", f"@{'0' * 6}") for word in positions]
    done = run("topic", "copy", "a", "b", *words, "--output", "json")
    assert (done.code, done.json["records"]) == (0, len(values))
    assert read_all(ottla_cluster, "b") == values


def test_second_copy_continues_whatever_its_start(run: Any, ottla_cluster: Cluster) -> None:
    """The stored position counts: no record is copied twice."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    run("topic", "copy", "a", "b", "-o", "beginning", "-o", "2")
    run("topic", "copy", "a", "b", "-o", "beginning")
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("words", [["-o", "x"], ["-o", "stored"], ["-o", "1", "-o", "2", "--follow"]])  # fmt: skip
def test_positions_that_a_copy_cannot_have(run: Any, words: list[str]) -> None:
    """They are errors of the command line, and no topic is created."""
    run("topic", "create", "a")
    assert run("topic", "copy", "a", "b", *words).code == 2
    assert "b" not in [row["name"] for row in run("topic", "list", "--output", "json").json]
