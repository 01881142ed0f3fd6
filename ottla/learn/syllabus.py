"""The lessons about questions of interviews, those that correct older texts, and defaults.

The first two lists come from the project's notes, sections 1.12 and 1.13 (with the numbers used
there). `tests/unit/learn/test_syllabus.py` compares them with the course and with docs/learn.md.
"""

from collections.abc import Mapping

INTERVIEW: Mapping[str, tuple[str, ...]] = {
    "ISR, OSR, AR": ("isr", "slow-replica"),
    "HW and LEO": ("high-watermark",),
    "how order shows": ("order", "in-flight"),
    "order of partitioner, serializer, interceptor": ("send-path",),
    "structure and threads of the producer": ("send-path",),
    "more consumers than partitions": ("idle-consumer",),
    "offset or offset + 1": ("committed-offset",),
    "when duplicates": ("retries", "acks-1-duplicates", "when-to-commit"),
    "when loss": ("acks-1", "unsent-records", "when-to-commit"),
    "what happens when a topic is created": ("create-topic",),
    "can partitions grow or shrink": ("grow-partitions",),
    "internal topics": ("internal-topics", "coordinator"),
    "assignment strategies": ("assignors",),
    "structure of the log directory": ("log-directory",),
    "role of the controller": ("controller", "controller-duties"),
    "what is elected when: controller, leader, ISR": ("controller", "acks-1", "isr"),
    "failed replica": ("isr", "truncation"),
    "why fast": ("batches",),
    "architecture": ("architecture",),
    "load test": ("load-test",),
    "backlog": ("lag",),
    "difference to other message queues": ("other-queues",),
    "low-level and high-level API": ("one-partition",),
    "three values of acks": ("acks-0", "acks-1", "acks-all", "acks-2"),
    "how consumers consume": ("pull", "rebalance"),
    "guarantee of order": ("order",),
    "duties of the controller (7 listeners)": ("controller-duties",),
    "election of replicas": ("controller", "unclean-election"),
    "how the log of a partition works": ("log-directory", "batch-format"),
    "how consumers get messages": ("pull",),
    "does Kafka lose data": ("acks-1", "acks-all", "unclean-election"),
    "does Kafka duplicate data": ("retries", "acks-1-duplicates"),
    "three semantics of delivery": ("when-to-commit", "exactly-once", "transaction"),
    "two conditions of a live replica": ("slow-replica",),
    "does the producer send to the leader directly": ("direct-to-leader",),
    "can a consumer consume a certain partition": ("one-partition",),
    "push or pull": ("pull",),
}
"""Questions of interviews, with the lessons that answer each."""

CORRECTIONS: Mapping[int, tuple[str, str, tuple[str, ...]]] = {
    1: (
        "offsets are kept in ZooKeeper",
        "offsets are in __consumer_offsets, not in ZooKeeper",
        ("coordinator", "internal-topics"),
    ),
    2: (
        "consumers rebalance by watches in ZooKeeper",
        "a coordinator rebalances, not watches in ZooKeeper",
        ("coordinator", "assignors"),
    ),
    3: (
        "a group rebalances when a broker dies",
        "the death of a broker does not rebalance a group",
        ("coordinator",),
    ),
    4: ("the leader pushes records to its followers", "followers pull", ("high-watermark",)),
    5: (
        "an administrator brings a recovered replica back",
        "a recovered replica returns to the ISR by itself",
        ("isr",),
    ),
    6: (
        "ZooKeeper replicates the records, or the producer writes all replicas",
        "brokers replicate",
        ("architecture", "acks-all"),
    ),
    7: (
        "the broker chooses the partition, at random",
        "the client chooses the partition: murmur2, sticky without a key",
        ("partitioner",),
    ),
    8: (
        "the folder has the name of the topic",
        "the folder is <topic>-<partition>",
        ("log-directory",),
    ),
    9: (
        "a segment is named by the offset of the last record before it",
        "a segment is named by its first offset, in 20 digits",
        ("log-directory",),
    ),
    10: ("segments end in .kafka or .index", "segments end in .log", ("log-directory",)),
    11: (
        "each record has a magic byte and a CRC-32 of its own",
        "record batches of format 2 with CRC-32C",
        ("batch-format",),
    ),
    12: (
        "consumers read a record once it is flushed",
        "consumers read below the high watermark; flushes do not matter",
        ("high-watermark",),
    ),
    13: (
        "one consumer reads a partition, of all groups",
        "different groups may read one partition",
        ("replay",),
    ),
    14: ("a group reads one topic", "a group spans topics", ("assignors", "subscription")),
    15: ("acks=0 is acknowledged by the network", "acks=0 has no response at all", ("acks-0",)),
    16: ("acks=1 loses nothing", "acks=1 may lose and duplicate", ("acks-1", "acks-1-duplicates")),
    17: ("acks may be 2, or any number of replicas", "acks is 0, 1 or all", ("acks-2",)),
    18: (
        "acks=all waits for every replica",
        "acks=all waits for the ISR, at least min.insync.replicas",
        ("acks-all",),
    ),
    19: (
        "a replica outside the ISR may lead by default",
        "unclean elections are off by default",
        ("unclean-election",),
    ),
    20: (
        "the new leader is the replica with the most records",
        "leaders are elected in assignment order",
        ("controller",),
    ),
    21: (
        "a poll commits the records that it returns",
        "a poll commits what the poll before it returned",
        ("auto-commit",),
    ),
    22: (
        "order needs one request in flight",
        "order allows 5 requests in flight with idempotence",
        ("in-flight",),
    ),
    23: (
        "a transactional id belongs to a consumer group",
        "a transactional id belongs to a producer id and epoch",
        ("fencing", "internal-topics"),
    ),
    24: (
        "num.partitions changes existing topics",
        "num.partitions is for new topics only",
        ("num-partitions",),
    ),
    25: (
        "the partitioner balances the load of brokers",
        "the controller spreads leaders over brokers; a key has its partition whatever the load is",
        ("create-topic", "partitioner"),
    ),
    26: (
        "clients find brokers in ZooKeeper",
        "clients find brokers by metadata requests",
        ("direct-to-leader",),
    ),
    27: (
        "a follower leaves the ISR when it is 4 000 records behind",
        "time decides about the ISR, not a number of records",
        ("slow-replica",),
    ),
    28: (
        "replicas truncate to the high watermark",
        "replicas truncate by leader epoch",
        ("truncation",),
    ),
    29: (
        "round robin deals partitions by their number",
        "round robin sorts topics by name",
        ("assignors",),
    ),
    30: ("a record may have any size", "the size of a record is limited", ("acks-0",)),
    31: (
        "names such as /controller_EPOCH, __consumers_offsets and enable.idompotence",
        "names: /controller_epoch, __consumer_offsets, enable.idempotence; None from on_send",
        ("names", "send-path"),
    ),
    32: (
        "a new group starts at the first record",
        "the console consumer starts at latest",
        ("offset-reset",),
    ),
    33: (
        "PermSize of the broker's JVM needs tuning",
        "PermSize is gone, and this broker has no JVM",
        ("memory",),
    ),
    34: (
        "small records are fast, each by itself",
        "small records in batches are fast, single ones are not",
        ("batches", "load-test"),
    ),
}
"""The claim of older texts, the right answer today, and the lessons that observe that."""

DEFAULTS: Mapping[str, tuple[str, int, str]] = {
    "compaction": (
        "cleanup.policy=delete, delete.retention.ms 24 hours, min.cleanable.dirty.ratio 0.5",
        534,
        "the same",
    ),
    "retention": (
        "log.retention.hours 168, retention.bytes -1, a check every 5 minutes",
        33,
        "the same",
    ),
    "member-timeouts": (
        "max.poll.interval.ms 5 minutes, session.timeout.ms 45 s, heartbeat.interval.ms 3 s",
        62,
        "the same",
    ),
    "static-membership": ("group.instance.id is not set", 345, "the same"),
    "cooperative-rebalance": (
        "range, cooperative-sticky",
        429,
        "the client is librdkafka's, whose default is range, roundrobin",
    ),
    "kraft": ("KRaft, the only mode since 4.0", 500, "ZooKeeper's layout; no KRaft quorum"),
    "eligible-leaders": (
        "new clusters have ELR since 4.1",
        966,
        "no ELR; the high watermark waits in the same way",
    ),
    "follower-fetching": (
        "client.rack is empty, replica.selector.class is not set: the leader",
        392,
        "the same; one selector",
    ),
    "dead-letters": (
        "none in broker and consumer; errors.tolerance=none in Kafka Connect",
        298,
        "the same for consumers; no Kafka Connect",
    ),
    "delivery-timeout": (
        "delivery.timeout.ms 120 s, request.timeout.ms 30 s, retries 2147483647",
        91,
        "the same",
    ),
}
"""The default of Apache Kafka, the KIP, and the behaviour of Ottla, for each lesson about one."""
