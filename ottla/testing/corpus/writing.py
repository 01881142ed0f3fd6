"""Writes the corpus to a cluster with requests of our own, since clients change records.

librdkafka replaces a timestamp of 0 and refuses large records; other clients cannot write a batch
with a chosen codec, or leave a transaction open.
"""

import time
from collections.abc import Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.client.transaction import Transaction, begin
from ottla.testing.corpus.names import GROUPS, LONG_METADATA, TRANSACTIONAL_IDS
from ottla.testing.corpus.topics import CorpusBatch, CorpusTopic, Ending, corpus_topics
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.batch import parse_header
from ottla.wire.records.records import Record, encode_batch

# Later versions name topics by id; newer transactions begin with their first write.
_PRODUCE_VERSION_MAX = 11
_FETCH_VERSION_MAX = 12
_TIMEOUT_MS = 30_000
# An open transaction has to outlive the tests that read it.
_TRANSACTION_MS = 600_000
_COMPACTION_S = 30.0
_POLL_S = 0.05


def write_corpus(brokers: Brokers, topics: Sequence[CorpusTopic] | None = None) -> None:
    """Create the topics (default: all of the corpus), and write their records.

    With all topics, the groups and transactional ids of the corpus exist, too.
    """
    for topic in corpus_topics() if topics is None else topics:
        create_topic(brokers, topic.name, partitions=topic.partitions, config=topic.config)
        _write_topic(brokers, topic)
    if topics is None:
        write_names(brokers, "corpus-values")


def write_names(brokers: Brokers, topic: str) -> None:
    """Commit an offset of a topic for each group, and begin each transactional id."""
    for number, group in enumerate(GROUPS):
        metadata = LONG_METADATA if number == 0 else group
        commit_offsets(brokers, group, {(topic, 0): CommittedOffset(number, metadata=metadata)})
    for transactional_id in TRANSACTIONAL_IDS:
        begin(brokers, transactional_id, _TRANSACTION_MS)


def _write_topic(brokers: Brokers, topic: CorpusTopic) -> None:
    for number, batch in enumerate(topic.batches):
        if batch.ending is Ending.NONE:
            _produce(brokers, topic.name, batch, None)
            continue
        transaction = begin(brokers, f"{topic.name}-{number}", _TRANSACTION_MS)
        transaction.add(brokers, topic.name, [batch.partition])
        _produce(brokers, topic.name, batch, transaction)
        if batch.ending is Ending.COMMIT:
            transaction.commit(brokers)
        elif batch.ending is Ending.ABORT:
            transaction.abort(brokers)
    if topic.first_offset:
        delete_records(brokers, {(topic.name, 0): topic.first_offset})
    if topic.is_compacted:
        _await_compaction(brokers, topic.name)


def _produce(
    brokers: Brokers, topic: str, batch: CorpusBatch, transaction: Transaction | None
) -> None:
    rows = [Record(row.key, row.value, row.headers, row.timestamp) for row in batch.records]
    if transaction is None:
        data = encode_batch(rows, compression=batch.codec)
    else:
        producer = transaction.producer
        data = encode_batch(
            rows,
            compression=batch.codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
    parts = [PartitionProduceData(index=batch.partition, records=bytes(data))]
    request = ProduceRequest(
        transactional_id=None if transaction is None else transaction.transactional_id,
        acks=-1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=parts)],
    )

    def attempt() -> None:
        node = brokers.leaders([(topic, batch.partition)])[topic, batch.partition]
        response = brokers.ask_node(
            node, request, ProduceResponse, max_version=_PRODUCE_VERSION_MAX
        )
        result = response.responses[0].partition_responses[0]
        if result.error_code:
            raise ApiError(
                ErrorCode(result.error_code), f"{topic}-{batch.partition}: {result.error_message}"
            )

    brokers.retry(attempt)


def _await_compaction(brokers: Brokers, topic: str) -> None:
    """Wait until the log cleaner has removed the first record."""
    deadline = time.monotonic() + _COMPACTION_S
    while _first_offset(brokers, topic) == 0:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{topic!r} is not compacted after {_COMPACTION_S:g} s: start the cluster with "
                "CLUSTER_OPTIONS"
            )
        time.sleep(_POLL_S)


def _first_offset(brokers: Brokers, topic: str) -> int:
    """Return the offset of the first batch of a partition."""
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1024,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1024)],
            )
        ],
    )
    node = brokers.leaders([(topic, 0)])[topic, 0]
    response = brokers.ask_node(node, request, FetchResponse, max_version=_FETCH_VERSION_MAX)
    records = response.responses[0].partitions[0].records
    assert not isinstance(records, list), "decoded records are one buffer"
    return parse_header(records).base_offset if records else 0
