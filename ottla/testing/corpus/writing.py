"""Writes the corpus to a cluster with requests of our own, since clients change records.

librdkafka replaces a timestamp of 0 and refuses large records; other clients cannot write a batch
with a chosen codec, or leave a transaction open.
"""

import time
from collections.abc import Sequence

from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.client.raw.batches import append_batch
from ottla.client.transaction import Transaction, begin
from ottla.testing.corpus.names import GROUPS, LONG_METADATA, TRANSACTIONAL_IDS
from ottla.testing.corpus.topics import CorpusBatch, CorpusTopic, Ending, corpus_topics
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.records.batch import parse_header
from ottla.wire.records.records import Record

# Later versions name topics by id.
_FETCH_VERSION_MAX = 12
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
    append_batch(brokers, topic, batch.partition, rows, codec=batch.codec, transaction=transaction)


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
