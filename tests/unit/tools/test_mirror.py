"""`ottla topic copy`: records, positions and offsets of groups."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.client.admin import offsets
from ottla.client.errors import TransactionAborted
from ottla.client.producer.producer import Producer
from ottla.client.transport import EndOfPartition, RecordConsumer
from ottla.streams.pipelines.translation import Point
from ottla.testing import Cluster
from ottla.tools.mirror import routes
from ottla.tools.mirror.copying import Mirror, MirrorSettings
from ottla.tools.mirror.routes import Points, Route
from ottla.tools.signals import StopSignals


def produce(cluster: Cluster, topic: str, values: Sequence[bytes], **options: Any) -> None:
    """Write records to a topic."""
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=50) as producer:
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
            for event in consumer.poll(5.0, limit=100):
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


def test_memory_of_points_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older points are thinned out; an offset is then translated to an earlier one."""
    monkeypatch.setattr(routes, "_POINTS_MAX", 10)
    points = Points(Point(0, number, 2 * number) for number in range(1000))
    assert points.next_offset(0) == 999
    translation = points.translation()
    assert translation.translate(0, 999) == 1998
    old = translation.translate(0, 500)
    assert old is not None and old <= 1000
