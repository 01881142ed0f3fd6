"""Reads `in`, writes `out`, each record in a transaction with its offset; one step at a time.

    python read_process_write.py BOOTSTRAP COUNT STEP

Ends when COUNT records of `in` have been committed. Prints each step to standard output. At STEP,
or at each one if STEP is `every`, it waits for a line on standard input, so that it, or the broker,
can be killed there. After an error it continues like a restarted program. `ReadProcessWrite.java`
is the same in Java.
"""

import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PATIENCE_S = 30.0
AT_ONCE = 4
_pause = threading.Event()


class Program:
    """The loop, and its producer and consumer, which are created again after an error."""

    def __init__(self, bootstrap: str, count: int, pause: str) -> None:
        self.bootstrap = bootstrap
        self.count = count
        self.pause = pause
        self.places = [TopicPartition("in", number) for number in (0, 1)]
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "process",
                "group.instance.id": "only",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self.consumer.subscribe(["in"])
        self.producer = self.new_producer()

    def new_producer(self) -> Producer:
        """Return a new producer, which has fenced all earlier ones."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": "process",
                "reconnect.backoff.max.ms": 200,
                "metadata.recovery.strategy": "none",
                # Without it, librdkafka 2.16 may wait for a group's coordinator that it has removed
                # until any connection is opened or closed (its issue 5511).
                "connections.max.idle.ms": 3000,
                "log_level": 0,
            }
        )
        producer.init_transactions(PATIENCE_S)
        return producer

    def step(self, name: str) -> None:
        """Print the step, and wait if it is the requested one."""
        sys.stdout.write(name + "\n")
        sys.stdout.flush()
        if self.pause in (name, "every"):
            sys.stdin.readline()

    def committed(self) -> list[TopicPartition]:
        """Return the group's offsets; waits for transactions that are not decided."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                offsets = self.consumer.committed(self.places, PATIENCE_S)
            except KafkaException:
                # librdkafka does not repeat the request if the group's coordinator has moved.
                if time.monotonic() > deadline:
                    raise
                _pause.wait(0.1)
            else:
                break
        return [TopicPartition(at.topic, at.partition, max(at.offset, 0)) for at in offsets]

    def run(self) -> None:
        """Run until all records are committed."""
        while sum(at.offset for at in self.committed()) < self.count:
            messages = self.consumer.consume(AT_ONCE, 1.0)
            if not messages:
                continue
            try:
                self.process(messages)
            except KafkaException as error:
                self.step(f"failed {error}")
                del self.producer
                self.producer = self.new_producer()
                for topic_partition in self.committed():
                    self.seek(topic_partition)
        self.consumer.close()
        self.step("done")

    def seek(self, topic_partition: TopicPartition) -> None:
        """Resume from an offset; the partition may not be assigned yet."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.consumer.seek(topic_partition)
            except KafkaException:
                assert time.monotonic() < deadline
                self.consumer.poll(0.1)
            else:
                return

    def process(self, messages: list) -> None:
        """Process the messages in one transaction."""
        self.producer.begin_transaction()
        self.step("begun")
        offsets: dict[int, int] = {}
        for message in messages:
            self.producer.produce("out", b"did " + message.value())
            offsets[message.partition()] = message.offset() + 1
        assert self.producer.flush(PATIENCE_S) == 0
        self.step("produced")
        self.producer.send_offsets_to_transaction(
            [TopicPartition("in", number, offset) for number, offset in offsets.items()],
            self.consumer.consumer_group_metadata(),
            PATIENCE_S,
        )
        self.step("offsets")
        self.step("committing")
        self.producer.commit_transaction(PATIENCE_S)
        self.step("committed")


if __name__ == "__main__":
    Program(sys.argv[1], int(sys.argv[2]), sys.argv[3]).run()
