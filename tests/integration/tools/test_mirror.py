"""`ottla topic copy`: records, positions and offsets of groups."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut, TransactionAborted
from ottla.client.producer.producer import Producer
from ottla.client.raw.consumer import EndOfPartition, RecordConsumer
from ottla.client.raw.goal import Goal
from ottla.operations.mirror import copying, routes
from ottla.operations.mirror.copying import Mirror, MirrorSettings
from ottla.operations.mirror.routes import Points, Route
from ottla.operations.mirror.translation import Point
from ottla.operations.offsets.positions import Anchor, Position
from ottla.testing import Cluster
from ottla.tools.signals import StopSignals

pytestmark = pytest.mark.slow


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
        points, _ = routes.read_points(brokers, Route("a", "b"), ottla_cluster.cluster_id)
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"3"]
    # The first attempt left three records and a marker before them.
    assert points == [Point(0, 0, 0), Point(0, 3, 7)]


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


@pytest.mark.parametrize("extra", [[], ["--exactly-once"]])
def test_group_that_has_read_little_is_translated(
    run: Any, ottla_cluster: Cluster, extra: list[str]
) -> None:
    """Without an offset in the copy, auto.offset.reset could skip all records that it misses."""
    produce(ottla_cluster, "b", [b"of others"])
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(1)})
        assert run("topic", "copy", "a", "b", "--groups", "g", *extra).code == 0
        assert offsets.committed_offsets(brokers, "g")["b", 0].offset == 1
    assert read_all(ottla_cluster, "b") == [b"of others", b"1", b"2", b"3"]


def test_missing_group_is_an_error_before_anything_is_copied(
    run: Any, ottla_cluster: Cluster
) -> None:
    """A mistyped group does not stay behind unnoticed; the target is not created."""
    produce(ottla_cluster, "a", [b"1"])
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(1)})
    done = run("topic", "copy", "a", "b", "--groups", "g", "--groups", "nope")
    assert (done.code, done.out) == (1, b"")
    assert "There is no group 'nope'" in done.errors
    assert run("topic", "describe", "b").code == 1


def test_mirror_that_follows_names_a_missing_group(ottla_cluster: Cluster) -> None:
    """The group may begin later: its offsets are translated from then on."""
    produce(ottla_cluster, "a", [b"1"])
    notes: list[str] = []

    def step(mirror: Mirror, stop: _Stop) -> None:
        stop.requested = mirror.copied == 1

    settings = replace(_FOLLOW, groups=("nope", "g"))
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(1)})
        _following(Mirror(brokers, brokers, [Route("a", "b")], settings, notes.append), step)
    assert notes == [
        "There is no group 'nope' in the source's cluster: it has no offsets to translate yet."
    ]


def test_mirror_that_began_at_the_end_resumes_there(ottla_cluster: Cluster) -> None:
    """Records that come while it is stopped are copied, also if it has not copied any before."""
    produce(ottla_cluster, "a", [b"1"])
    settings = replace(_FOLLOW, start=Position(Anchor.END))

    def stop_at_once(_: Mirror, stop: _Stop) -> None:
        stop.requested = True

    def stop_after_one(mirror: Mirror, stop: _Stop) -> None:
        stop.requested = mirror.copied == 1

    with ottla_cluster.admin() as brokers:
        _following(Mirror(brokers, brokers, [Route("a", "b")], settings, print), stop_at_once)
        produce(ottla_cluster, "a", [b"2"])
        _following(Mirror(brokers, brokers, [Route("a", "b")], settings, print), stop_after_one)
    assert read_all(ottla_cluster, "b") == [b"2"]


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
    assert "ottla topic add-partitions b --total 2" in done.errors


@pytest.mark.parametrize("command_line", [["a"], ["a", "a"]])
def test_copy_onto_itself_is_refused(run: Any, command_line: list[str]) -> None:
    """The usage error names both remedies."""
    done = run("topic", "copy", *command_line)
    assert done.code == 2
    assert "--to" in done.errors


@pytest.mark.parametrize("other", [False, True])
def test_copy_onto_itself_by_another_address_is_refused(
    run: Any, ottla_cluster: Cluster, other: bool
) -> None:
    """The topic's id shows it; otherwise the copies would be copied again, without end."""
    produce(ottla_cluster, "a", [b"1"])
    address = ottla_cluster.bootstrap.replace("127.0.0.1", "localhost")
    done = run("topic", "copy", "a", *(["b"] if other else []), "--to", address)
    if other:
        assert done.code == 0
        return
    assert done.code == 1
    assert "source and target of 'a' are the same topic: name another target" in done.errors
    assert [row["name"] for row in run("topic", "list", "--output", "json").json] == ["a"]


@pytest.mark.parametrize("path", [["a", "b", "a"], ["a", "b", "c", "a"]])
def test_mirrors_in_a_circle_are_refused(ottla_cluster: Cluster, path: list[str]) -> None:
    """Each would copy the records of the other again and again; a copy that ends is allowed."""
    produce(ottla_cluster, "a", [b"1"])

    def stop_at_once(_: Mirror, stop: _Stop) -> None:
        stop.requested = True

    *before, last = map(Route, path[:-1], path[1:])
    with ottla_cluster.admin() as brokers:
        for route in before:
            _following(Mirror(brokers, brokers, [route], _FOLLOW, print), stop_at_once)
        sentence = f"'{last.source}' is a copy of 'a'.* topic 'b.mirror-offsets'"
        with pytest.raises(ConfigError, match=sentence):
            Mirror(brokers, brokers, [last], _FOLLOW, print)
        Mirror(brokers, brokers, [last], MirrorSettings(), print)


def test_settings_of_the_source_cluster_are_not_copied(run: Any, ottla_cluster: Cluster) -> None:
    """Throttles, minimum in-sync replicas and the type of timestamps depend on the cluster.

    The exceptions are the same as in MirrorMaker 2. The timestamps of a copy are its source's.
    """
    own = {"min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"}
    throttle = {"leader.replication.throttled.replicas": "0:1"}
    ottla_cluster.create_topic("a", config={**own, **throttle, "segment.bytes": "1048576"})
    assert run("topic", "copy", "a", "b").code == 0
    config = {row["name"]: row["value"] for row in run("topic", "config", "b", "--output", "json").json}  # fmt: skip
    assert config == {"segment.bytes": "1048576"}


def test_topic_that_was_created_again_is_copied_from_its_beginning(
    run: Any, ottla_cluster: Cluster
) -> None:
    """Its stored position is after its end, which is reported."""
    produce(ottla_cluster, "a", [b"1", b"2"])
    run("topic", "copy", "a", "b")
    run("topic", "delete", "a", "--yes")
    produce(ottla_cluster, "a", [b"3"])
    done = run("topic", "copy", "a", "b")
    assert "a-0: the stored position 2 is after the end 1, so a was created again" in done.errors
    assert read_all(ottla_cluster, "b") == [b"1", b"2", b"3"]


def test_copy_waits_until_brokers_know_the_topics_that_it_creates(
    run: Any, ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With KRaft a broker may learn of a new topic after the controller's response."""
    produce(ottla_cluster, "a", [b"1"])
    lookup = Brokers.known_leaders
    seen: set[str] = set()

    def late(self: Brokers, topics: set[str], **options: Any) -> Any:
        for name in topics - {"a", *seen}:
            seen.add(name)
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        return lookup(self, topics, **options)

    monkeypatch.setattr(Brokers, "known_leaders", late)
    done = run("topic", "copy", "a", "b")
    assert (done.code, done.errors) == (0, "")
    assert seen == {"b", "b.mirror-offsets"}
    assert read_all(ottla_cluster, "b") == [b"1"]


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

    def wait(self, seconds: float) -> None:
        """Return at once."""


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
                topics.create_partitions(brokers, "src", 2)
                produce(ottla_cluster, "src", [b"1"], partition=1)
                notes.append("added")
            elif "add some with" in notes[-1]:
                topics.create_partitions(brokers, "dst", 2)
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


def test_exactly_once_continues_where_the_fenced_mirror_stopped(ottla_cluster: Cluster) -> None:
    """Records that another instance commits until it is fenced are not copied a second time."""
    produce(ottla_cluster, "a", [b"1"])
    settings = replace(_FOLLOW, exactly_once=True)
    later: list[Mirror] = []
    with ottla_cluster.admin() as brokers:

        def step(mirror: Mirror, stop: _Stop) -> None:
            if mirror.copied == 1 and not later:
                # It knows the first position only.
                rest = replace(settings, follow=False)
                later.append(Mirror(brokers, brokers, [Route("a", "b")], rest, print))
                produce(ottla_cluster, "a", [b"2"])
            stop.requested = mirror.copied == 2

        _following(Mirror(brokers, brokers, [Route("a", "b")], settings, print), step)
        later[0].run(cast(StopSignals, _Stop()), lambda _: None)
        assert later[0].copied == 0
    assert read_all(ottla_cluster, "b") == [b"1", b"2"]


def test_batches_of_a_long_copy_stay_large(ottla_cluster: Cluster) -> None:
    """A copy that ends looks for no new topics, so the time of that look does not end a batch."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    row = records_of(ottla_cluster, "a")[0]

    class Records:
        polls = 0

        def poll(self, _: float, *, limit: int) -> list[Any]:
            self.polls += 1
            return [row._replace(offset=self.polls - 1)]

    address = ottla_cluster.bootstrap
    with ottla_cluster.admin() as brokers, Producer(bootstrap_servers=address) as producer:
        mirror = Mirror(brokers, brokers, [Route("a", "b")], MirrorSettings(refresh_s=-1.0), print)
        goal = Goal(stops={("a", 0): 3})
        goal.assign({("a", 0): 0})
        mirror._fill(producer, cast(RecordConsumer, Records()), goal, cast(StopSignals, _Stop()))
        assert mirror._count == 3


def test_throttled_copy_waits_between_transactions(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records before the wait are committed, and a copy does not wait at its end."""
    produce(ottla_cluster, "a", [b"x" * 1000] * 3)
    waits: list[tuple[float, int]] = []

    class Waiting(_Stop):
        def wait(self, seconds: float) -> None:
            waits.append((seconds, len(read_all(ottla_cluster, "b"))))

    monkeypatch.setattr(copying, "_BATCH", 1)
    settings = MirrorSettings(exactly_once=True, bytes_per_s=100)
    with ottla_cluster.admin() as brokers:
        mirror = Mirror(brokers, brokers, [Route("a", "b")], settings, print)
        mirror.run(cast(StopSignals, Waiting()), lambda _: None)
    ((seconds, committed),) = [row for row in waits if row[0] > 0]
    assert (mirror.copied, committed) == (3, 2)
    assert 10.0 < seconds <= 20.0


def test_exactly_once_survives_a_target_that_is_down_for_long(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that could not be written in time is repeated by a mirror that follows."""
    produce(ottla_cluster, "a", [b"1"])
    stored = Mirror._store
    notes: list[str] = []

    def fail_once(self: Mirror, producer: Producer) -> None:
        stored(self, producer)
        if not notes:
            raise TimedOut("the cluster did not take the records in time")

    def step(mirror: Mirror, stop: _Stop) -> None:
        stop.requested = mirror.copied == 1

    monkeypatch.setattr(Mirror, "_store", fail_once)
    settings = replace(_FOLLOW, exactly_once=True)
    with ottla_cluster.admin() as brokers:
        _following(Mirror(brokers, brokers, [Route("a", "b")], settings, notes.append), step)
    assert read_all(ottla_cluster, "b") == [b"1"]
    assert notes == ["Copying is repeated: the cluster did not take the records in time"]


def test_mirror_outlives_requests_for_groups_that_fail(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offsets of groups are not worth the end of a mirror: each failure is reported once."""
    produce(ottla_cluster, "a", [b"1"])
    notes: list[str] = []

    def fail(*_: Any) -> None:
        raise NotReachable("nothing listens")

    def step(mirror: Mirror, stop: _Stop) -> None:
        if mirror.copied == 1 and read_all(ottla_cluster, "a") == [b"1"]:
            produce(ottla_cluster, "a", [b"2"])
        stop.requested = mirror.copied == 2

    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(0)})
    monkeypatch.setattr(copying, "translate_group", fail)
    monkeypatch.setattr(copying.offsets, "commit_offsets", fail)
    monkeypatch.setattr(copying, "_GROUPS_S", 0.0)
    settings = replace(_FOLLOW, group="mirror", groups=("g",))
    with ottla_cluster.admin() as brokers:
        mirror = Mirror(brokers, brokers, [Route("a", "b")], settings, notes.append)
        with pytest.raises(NotReachable):
            _following(mirror, step)
    assert read_all(ottla_cluster, "b") == [b"1", b"2"]
    assert sorted(notes) == [
        "Offsets of groups are not translated now: nothing listens",
        "The offsets of group 'mirror' do not show this mirror's position: nothing listens",
    ]


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
