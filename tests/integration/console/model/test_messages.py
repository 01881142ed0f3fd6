"""Browsing, searching and following records of a real topic."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ottla.base.errors import ApiError, ConfigError
from ottla.base.search.conditions import Condition, Field, Operator
from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.console.model import topics
from ottla.console.model.log_inspector import inspect
from ottla.console.model.messages.browsing import (
    BrowseRequest,
    Seek,
    browse,
    read_message,
    search,
    tail,
)
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.model.producing import InputFormat, ProduceRequest, produce
from ottla.console.model.transactions import (
    HangingTransaction,
    abort_hanging,
    abort_open,
    describe_transaction,
    find_hanging,
    list_transactions,
)
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster

# The records are of a fixed day: the topics keep them.
_T0 = 1_767_225_600_000
_TOPIC = "browsed"
_RECORDS = 2_000


@pytest.fixture(scope="module")
def records(cluster: Cluster) -> Iterator[ClusterConnection]:
    """Return a connection to a cluster whose topic has 2 000 records in three partitions."""
    connection = ClusterConnection(ClusterSettings("test", cluster.bootstrap))
    topics.create_topic(connection, topics.NewTopic(_TOPIC, 3, 1, {"retention.ms": "-1"}))
    for number in range(4):
        request = ProduceRequest(
            _TOPIC,
            f'{{"n":{{{{n}}}},"part":{number}}}',
            key="k{{n}}",
            key_format=InputFormat.TEXT,
            timestamp_ms=_T0 + 1000 * number,
            count=_RECORDS // 4,
            codec=("none", "gzip", "lz4", "zstd")[number],
            has_templates=True,
        )
        produce(connection, request)
    yield connection
    connection.close()


def _pages(connection: ClusterConnection, request: BrowseRequest) -> list[list[tuple[int, int]]]:
    pages, positions = [], ((0, -1),)
    current = request
    while positions:
        result = browse(connection, current)
        pages.append([(row.partition, row.offset) for row in result.rows])
        positions = result.next_positions
        fields = {name: getattr(request, name) for name in BrowseRequest.__slots__}
        current = BrowseRequest(**{**fields, "positions": positions})
    return pages


@pytest.mark.parametrize("seek", [Seek.NEWEST, Seek.OLDEST])
@pytest.mark.parametrize("limit", [70, 999, 5000])
def test_pages_have_every_record_once(records: ClusterConnection, seek: Seek, limit: int) -> None:
    """Following `next_positions` returns each record exactly once, in pages of the limit."""
    pages = _pages(records, BrowseRequest(_TOPIC, seek=seek, limit=limit))
    rows = [row for page in pages for row in page]
    assert len(rows) == len(set(rows)) == _RECORDS
    assert max(map(len, pages)) <= limit


@pytest.mark.parametrize("seek", [Seek.NEWEST, Seek.OLDEST])
def test_filtered_pages_have_every_match_once(records: ClusterConnection, seek: Seek) -> None:
    """Pages of a search have each match once, although windows end between them."""
    condition = Condition(Field.KEY, Operator.REGEX, "^k[0-9]*7$")
    request = BrowseRequest(_TOPIC, seek=seek, limit=11, conditions=(condition,))
    rows = [row for page in _pages(records, request) for row in page]
    assert len(rows) == len(set(rows)) == _RECORDS // 10


def test_newest_records_come_first(records: ClusterConnection) -> None:
    """The newest records are sorted by timestamp over all partitions."""
    result = browse(records, BrowseRequest(_TOPIC, limit=500))
    stamps = [row.timestamp_ms for row in result.rows]
    assert stamps == sorted(stamps, reverse=True)
    assert set(stamps) == {_T0 + 3000}
    assert result.ended_by == "limit"


def test_times_select_records(records: ClusterConnection) -> None:
    """A search from a time until another has the records between them."""
    request = BrowseRequest(
        _TOPIC, seek=Seek.TIMESTAMP, timestamp_ms=_T0 + 500, until_ms=_T0 + 1500, limit=5000
    )
    result = browse(records, request)
    assert {row.timestamp_ms for row in result.rows} == {_T0 + 1000}
    assert len(result.rows) == _RECORDS // 4


def test_one_record_is_read(records: ClusterConnection) -> None:
    """A record has its decoded parts; an offset without a record is an error."""
    row = read_message(records, _TOPIC, 0, 3)
    assert (row.partition, row.offset, row.timestamp_type) == (0, 3, "create")
    with pytest.raises(ConfigError, match="no record at offset"):
        read_message(records, _TOPIC, 0, 10_000_000)
    with pytest.raises(ApiError, match="no partition 8"):
        read_message(records, _TOPIC, 8, 0)


def test_masked_fields_cannot_be_searched(records: ClusterConnection) -> None:
    """Conditions see masked values: a hidden field cannot be guessed by a search."""
    rule = MaskingRule("brow.*", "value", "$.n")
    secret = Condition(Field.VALUE, Operator.CONTAINS, '"n":77,')
    request = BrowseRequest(_TOPIC, conditions=(secret,), masking=(rule,))
    assert browse(records, request).rows == ()
    row = browse(records, BrowseRequest(_TOPIC, limit=1, masking=(rule,))).rows[0]
    assert row.value is not None
    assert '"n":"******"' in row.value.text


def test_a_search_is_cancelled(records: ClusterConnection) -> None:
    """A cancelled search ends after the response that it waits for, and can be continued."""
    never_matching = Condition(Field.VALUE, Operator.EQUALS, "nothing")
    request = BrowseRequest(_TOPIC, seek=Seek.OLDEST, conditions=(never_matching,))
    *_, last = search(records, request, cancelled=lambda: True)
    assert last.result is not None
    assert last.result.ended_by == "cancelled"
    assert last.result.progress.total == _RECORDS
    assert last.result.next_positions


def test_a_limit_of_scanned_offsets(records: ClusterConnection) -> None:
    """A search ends when it has scanned the allowed number of offsets, at the next response."""
    condition = Condition(Field.VALUE, Operator.EQUALS, "nothing")
    request = BrowseRequest(_TOPIC, seek=Seek.OLDEST, conditions=(condition,), scan_limit=100)
    assert browse(records, request).ended_by == "scan-limit"


@pytest.mark.parametrize("limit", [0, 10_001])
def test_limits_are_checked(records: ClusterConnection, limit: int) -> None:
    """A page has 1 to 10 000 records."""
    with pytest.raises(ConfigError):
        browse(records, BrowseRequest(_TOPIC, limit=limit))


def test_new_records_are_followed(records: ClusterConnection, topic: str) -> None:
    """The tail yields records that arrive after its start, and ends when it is cancelled."""
    topics.create_topic(records, topics.NewTopic(topic, 2, 1))
    produce(records, ProduceRequest(topic, "old"))
    stopped = threading.Event()
    rows = tail(records, BrowseRequest(topic), cancelled=stopped.is_set)
    assert next(rows) == ()
    produce(records, ProduceRequest(topic, "new {{n}}", count=3, has_templates=True))
    texts: list[str] = []
    for batch in rows:
        texts += [row.value.text for row in batch if row.value is not None]
        if len(texts) >= 3:
            stopped.set()
    assert sorted(texts) == ["new 0", "new 1", "new 2"]


def test_aborted_transactions_are_hidden_from_committed_reads(
    records: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """An open transaction is listed and aborted; read_committed then shows neither its records nor
    the marker.
    """
    topics.create_topic(records, topics.NewTopic(topic, 1, 1))
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(10)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(10)
    (row,) = [item for item in list_transactions(records) if item.transactional_id == topic]
    assert (row.state, row.partitions) == ("Ongoing", ((topic, 0),))
    change = abort_open(records, topic)
    assert change.before["state"] == "Ongoing"
    assert describe_transaction(records, topic).state != "Ongoing"
    everything = BrowseRequest(topic, seek=Seek.OLDEST, is_read_committed=False)
    committed = BrowseRequest(topic, seek=Seek.OLDEST)
    for _ in range(100):
        texts = [row.value.text for row in browse(records, committed).rows if row.value]
        if browse(records, committed).progress.total == 4:
            break
        records.pause(0.05)
    assert texts == ["committed"]
    texts = [row.value.text for row in browse(records, everything).rows if row.value]
    assert texts == ["committed", "aborted"]
    del producer


@pytest.fixture
def guarded() -> Iterator[ClusterConnection]:
    """Return a connection of an administrator, whom only an authorizer knows."""
    options = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(options=options) as cluster:
        connection = ClusterConnection(ClusterSettings("test", cluster.bootstrap))
        yield connection
        connection.close()


def test_a_transaction_that_its_coordinator_knows_is_not_hanging(
    guarded: ClusterConnection, topic: str
) -> None:
    """An open transaction is not hanging; an abort marker for its producer ends it in the
    partition.
    """
    topics.create_topic(guarded, topics.NewTopic(topic, 1, 1))
    producer = Producer(
        {"bootstrap.servers": guarded.settings.bootstrap, "transactional.id": topic}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(10)
    assert find_hanging(guarded, topic=topic, max_timeout_s=-60.0) == []
    log = inspect(guarded, topic, 0)
    (row,) = log.producers
    assert (row.transaction_start_offset, log.last_stable_offset) == (0, 0)
    hanging = HangingTransaction(
        topic, 0, row.producer_id, row.producer_epoch, row.coordinator_epoch, 0, 0, 0.0
    )
    change = abort_hanging(guarded, hanging)
    assert change.action == "transaction.abort-hanging"
    assert inspect(guarded, topic, 0).producers[0].transaction_start_offset is None
    assert inspect(guarded, topic, 0).last_stable_offset == 2
    del producer


def test_the_tail_shows_a_transaction_that_was_open_at_its_start(
    records: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """Its records become readable with the commit, as for a consumer that begins at the end."""
    topics.create_topic(records, topics.NewTopic(topic, 1, 1))
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"written before")
    producer.flush(10)
    stopped = threading.Event()
    rows = tail(records, BrowseRequest(topic), cancelled=stopped.is_set)
    assert next(rows) == ()
    producer.produce(topic, b"written later")
    producer.commit_transaction(10)
    texts: list[str] = []
    for batch in rows:
        texts += [row.value.text for row in batch if row.value is not None]
        if "written later" in texts:
            stopped.set()
    assert texts == ["written before", "written later"]


def test_the_tail_follows_a_topic_that_is_created_again(
    records: ClusterConnection, topic: str
) -> None:
    """The records of the new topic arrive, from its beginning."""
    topics.create_topic(records, topics.NewTopic(topic, 1, 1))
    produce(records, ProduceRequest(topic, "old", count=5))
    stopped = threading.Event()
    rows = tail(records, BrowseRequest(topic), cancelled=stopped.is_set)
    assert next(rows) == ()
    topics.delete_topic(records, topic, confirmation=topic)
    topics.create_topic(records, topics.NewTopic(topic, 1, 1))
    produce(records, ProduceRequest(topic, "new {{n}}", count=2, has_templates=True))
    texts: list[str] = []
    for batch in rows:
        texts += [row.value.text for row in batch if row.value is not None]
        if len(texts) >= 2:
            stopped.set()
    assert sorted(texts) == ["new 0", "new 1"]
