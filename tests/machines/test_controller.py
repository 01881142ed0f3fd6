"""Transcripts of the controller: events, and indented below each event its writes and notices.

`controller_*.txt` are executed line by line. Set OTTLA_REWRITE_TRANSCRIPTS=1 to write the planner's
current output into the files, and review the difference like code.

    brokers ID …                  these are registered now; `2!` has restarted
    topic NAME R,R …              create a topic: the replicas of each partition
    partitions NAME COUNT [R,R …] add partitions
    isr NAME-P R,R                its leader has changed the ISR
    unclean NAME                  allow unclean elections from now on
    delete NAME · deleted BROKER NAME [failed P,P]   request it; a broker responds
    show NAME
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.base.errors import ApiError
from ottla.base.rng import SeededRng
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage
from ottla.cluster.options import option_tables
from ottla.cluster.zk.port import Create, Operation, SetData
from ottla.controller.planning import creation, deletion, planner
from ottla.controller.planning.notices import Notice
from ottla.controller.planning.requests import PartitionsRequest, TopicRequest

TRANSCRIPTS = sorted(Path(__file__).parent.glob("controller_*.txt"))
REWRITE = os.environ.get("OTTLA_REWRITE_TRANSCRIPTS") == "1"
EPOCH = 1


class Player:
    """Executes the lines of one transcript on an image, as a controller does, without a tree."""

    def __init__(self) -> None:
        self.image = ClusterImage(controller_id=1, controller_epoch=EPOCH)
        self.rng = SeededRng(1)
        self.unclean: set[str] = set()
        self.deletions: dict[str, deletion.Deletion] = {}
        self.registrations = 0

    def play(self, line: str) -> Iterator[str]:
        """Execute one line and return its effects."""
        verb, *words = line.split()
        try:
            yield from getattr(self, f"play_{verb}")(*words)
        except ApiError as error:
            yield f"{error.code.name}"

    def play_brokers(self, *words: str) -> Iterator[str]:
        """Change the registrations."""
        live = {}
        for word in words:
            broker_id = int(word.rstrip("!"))
            known = self.image.broker(broker_id)
            if known is None or word.endswith("!"):
                self.registrations += 1
                known = BrokerImage(broker_id, "host", 9092, epoch=self.registrations)
            live[broker_id] = known
        change = planner.compare_brokers(self.image.brokers, live)
        before = self.image
        after = planner.plan_brokers(before, live, self.unclean.__contains__)
        yield from self.write(planner.write_states(before, after, EPOCH), after)
        yield from notices(planner.plan_notices(before, self.image, change.registered))
        for name, result in self.deletions.items():
            for broker_id in change.removed:
                result = deletion.broker_gone(result, broker_id)
            for broker_id in change.registered:
                result = deletion.broker_returned(result, broker_id)
            self.deletions[name] = result
        yield from self.proceed()

    def write(self, writes: Iterable[creation.Write], after: ClusterImage) -> Iterator[str]:
        """Return the writes as text, and apply them to the image."""
        for write in writes:
            yield from map(operation, write.operations)
            after = after.with_topics(write.topics)
        self.image = after

    def now(self) -> creation.Environment:
        """Return the inputs of plans."""
        snapshot = option_tables.parse_broker_settings({}).snapshot
        return creation.Environment(image=self.image, options=snapshot, rng=self.rng)

    def play_topic(self, name: str, *replicas: str) -> Iterator[str]:
        """Create a topic."""
        assignments = tuple((number, ids(text)) for number, text in enumerate(replicas))
        existing = [*self.image.topics, *self.deletions]
        request = TopicRequest(name, assignments=assignments)
        new = creation.plan_topic(request, existing, self.now())
        before = self.image
        write = creation.write_topic(new, EPOCH)
        yield from self.write([write], before)
        yield from notices(planner.plan_notices(before, self.image))

    def play_partitions(self, name: str, count: str, *replicas: str) -> Iterator[str]:
        """Add partitions to a topic."""
        assignments = tuple(ids(text) for text in replicas) or None
        before = self.image
        former = before.topics[name]
        request = PartitionsRequest(name, int(count), assignments)
        placement = creation.place_partitions(request, former, self.now())
        topic = former.with_partitions(placement.partitions())
        yield from self.write([creation.write_partitions(former, topic, EPOCH)], before)
        yield from notices(planner.plan_notices(before, self.image))

    def play_isr(self, location: str, members: str) -> Iterator[str]:
        """Let a leader change its ISR."""
        name, _, number = location.rpartition("-")
        topic = self.image.topics[name]
        partition = topic.partitions[int(number)]
        changed = replace(
            partition, isr=ids(members), partition_epoch=partition.partition_epoch + 1
        )
        self.image = self.image.with_topics([topic.with_partitions([changed])])
        return iter(())

    def play_unclean(self, name: str) -> Iterator[str]:
        """Allow unclean elections of a topic."""
        self.unclean.add(name)
        return iter(())

    def play_delete(self, name: str) -> Iterator[str]:
        """Begin a deletion."""
        before = self.image
        self.image = before.with_topics(deleted=[name])
        self.deletions[name] = deletion.begin(before.topics[name])
        yield from notices(planner.plan_notices(before, self.image))
        yield from self.proceed()

    def play_deleted(self, broker: str, name: str, *failed: str) -> Iterator[str]:
        """Let a broker respond."""
        numbers = ids(failed[1]) if failed else ()
        self.deletions[name] = deletion.answered(self.deletions[name], int(broker), numbers)
        yield from self.proceed()

    def proceed(self) -> Iterator[str]:
        """Continue every deletion."""
        for name in list(self.deletions):
            result, orders = deletion.start(self.deletions[name], self.image.brokers)
            self.deletions[name] = result
            for broker_id, partitions in orders.items():
                yield f"send {broker_id}: delete {', '.join(f'{t}-{p}' for t, p in partitions)}"
            if result.is_left_to(self.image.brokers):
                del self.deletions[name]
                yield f"remove the nodes of {name}"

    def play_show(self, name: str) -> Iterator[str]:
        """Return the state of a topic."""
        for partition in self.image.topics[name].partitions:
            offline = f" offline={partition.offline_replicas}" if partition.offline_replicas else ""
            yield f"{name}-{partition.partition} {state(partition)}{offline}"


def ids(text: str) -> tuple[int, ...]:
    """Read a list of ids."""
    return tuple(int(item) for item in text.split(","))


def state(partition: PartitionImage) -> str:
    """Render leader, epochs and ISR."""
    recovering = " recovering" if partition.is_recovering else ""
    return (
        f"leader={partition.leader} epoch={partition.leader_epoch} "
        f"isr={','.join(map(str, partition.isr))}{recovering}"
    )


def operation(item: Operation) -> str:
    """Render an operation of a write."""
    if isinstance(item, SetData):
        return f"set {item.path} version={item.version} {item.data.decode()}"
    assert isinstance(item, Create), item
    return f"create {item.path} {item.data.decode()}".rstrip()


def notices(items: Sequence[Notice]) -> Iterator[str]:
    """Render the notices to brokers."""
    for notice in items:
        for item in notice.leaders:
            new = " new" if item.is_new else ""
            yield (
                f"send {notice.broker_id}: {item.topic}-{item.partition} leader={item.leader} "
                f"epoch={item.leader_epoch} isr={','.join(map(str, item.isr))}{new}"
            )
        update = notice.metadata
        assert update is not None
        parts = [f"topics={','.join(topic.name for topic in update.changed)}"]
        if update.brokers is not None:
            parts.insert(0, f"brokers={','.join(map(str, update.brokers))}")
        if update.deleted:
            parts.append(f"deleted={','.join(update.deleted)}")
        if update.is_complete:
            parts.append("complete")
        yield f"send {notice.broker_id}: metadata {' '.join(parts)}"


def played(text: str) -> str:
    """Return a transcript as the planner would write it."""
    player = Player()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            # Ids of topics are random and long; the seed makes them reproducible.
            lines += [f"  {effect}" for effect in player.play(line)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_controller_has_the_effects_of_the_transcript(path: Path) -> None:
    """Every event has exactly the effects that were reviewed."""
    text = path.read_text(encoding="utf-8")
    transcript_text = played(text)
    if REWRITE:
        path.write_text(transcript_text, encoding="utf-8")
    assert transcript_text == text


def test_there_are_transcripts() -> None:
    """An empty glob would prove nothing."""
    assert len(TRANSCRIPTS) >= 4
