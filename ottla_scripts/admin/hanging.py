"""`kafka-transactions find-hanging` and `abort`: transactions that no coordinator ends (KIP-664)."""

import time

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin import topics
from ottla.client.admin import transactions as admin
from ottla.client.admin.transactions import ActiveProducer
from ottla.client.brokers import Brokers
from ottla.operations.transactions import Key, abort_hanging, partitions_on
from ottla_scripts.flags import Options
from ottla_scripts.java_errors import at_leader, java_message


def reason(error: ApiError, key: Key | None = None) -> str:
    """Return the end of a sentence about an error, as TransactionsCommand prints it.

    `key` is the partition whose leader has failed.
    """
    worded = error if key is None else at_leader(error, *key)
    return f"{java_message(worded)}. Enable debug logging for additional detail."


def find(brokers: Brokers, options: Options) -> tuple[list[str], list[list[object]]]:
    """Return the table of hanging transactions of a topic, a partition or a broker."""
    if "topic" not in options and "broker-id" not in options:
        raise OttlaError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if "partition" in options and "topic" not in options:
        raise OttlaError("The --partition argument requires --topic to be provided")
    now_ms = time.time_ns() // 1_000_000
    partitions, node_id = _partitions(brokers, options), options["broker-id"]
    try:
        found = admin.find_hanging_transactions(
            brokers,
            partitions,
            now_ms=now_ms,
            max_timeout_ms=options["max-transaction-timeout"] * 60_000,
            node_id=node_id,
        )
    except ApiError as error:
        where = "Optional.empty" if node_id is None else f"Optional[{node_id}]"
        raise OttlaError(
            f"Failed to describe producers for {len(partitions)} partitions on broker {where}: "
            f"{reason(error)}"
        ) from None
    heads = ["Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
             "LastTimestamp", "Duration(min)"]  # fmt: skip
    return heads, [
        [
            row.topic,
            row.partition,
            row.producer.producer_id,
            row.producer.producer_epoch,
            row.producer.coordinator_epoch,
            row.producer.transaction_start_offset,
            row.producer.last_timestamp,
            (now_ms - row.producer.last_timestamp) // 60_000,
        ]
        for row in found
    ]


def _partitions(brokers: Brokers, options: Options) -> list[Key]:
    name, node_id = options["topic"], options["broker-id"]
    if "partition" in options:
        return [(name, options["partition"])]
    if name is None:
        described = topics.list_topics(brokers)
    else:
        try:
            described = [topics.describe_topic(brokers, name)]
        except ApiError as error:
            raise OttlaError(
                f"Failed to describe 1 topics: {reason(ApiError(error.code))}"
            ) from None
    return partitions_on(described, node_id)


def abort(brokers: Brokers, options: Options) -> None:
    """Abort a transaction in one partition, by its first offset or by its producer."""
    topic, partition = options["topic"], options["partition"]
    producer = _producer(brokers, options)
    try:
        abort_hanging(brokers, (topic, partition), producer)
    except ApiError as error:
        spec = (
            f"AbortTransactionSpec(topicPartition={topic}-{partition}, "
            f"producerId={producer.producer_id}, producerEpoch={producer.producer_epoch}, "
            f"coordinatorEpoch={max(producer.coordinator_epoch, 0)})"
        )
        raise OttlaError(
            f"Failed to abort transaction {spec}: {reason(error, (topic, partition))}"
        ) from None


def _producer(brokers: Brokers, options: Options) -> ActiveProducer:
    start = options["start-offset"]
    if start is not None:
        return _producer_at(brokers, options["topic"], options["partition"], start)
    if "producer-id" not in options:
        raise OttlaError(
            "The transaction to abort must be identified either with --start-offset (for brokers on "
            "3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for "
            "older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if name not in options:
            raise OttlaError(f"Missing required argument --{name}")
    return ActiveProducer(
        options["producer-id"], options["producer-epoch"], -1, -1, -1, options["coordinator-epoch"]
    )


def _producer_at(brokers: Brokers, topic: str, partition: int, start: int) -> ActiveProducer:
    name = f"{topic}-{partition}"
    try:
        producer = admin.find_open_transaction(brokers, topic, partition, start)
    except ApiError as error:
        raise OttlaError(
            f"Failed to validate producer state for partition {name}: "
            f"{reason(error, (topic, partition))}"
        ) from None
    if producer is not None:
        return producer
    raise OttlaError(
        f"Could not find any open transactions starting at offset {start} on partition {name}"
    )
