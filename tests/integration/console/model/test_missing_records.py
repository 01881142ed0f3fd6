"""Records that cannot be read: every reader of the console says that they are missing."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import IncompleteRead

import pytest

from ottla.base.clock import RealClock
from ottla.client.admin.topics import create_topic
from ottla.client.raw.batches import append_batch
from ottla.console.accounts import passwords
from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.model.messages import scanning
from ottla.console.model.messages.browsing import BrowseRequest, Seek, browse
from ottla.console.model.messages.statistics import read_statistics
from ottla.console.server import ConsoleServer
from ottla.console.sql.queries import Queries
from ottla.console.sql.values import QueryResult
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from ottla.wire.records.records import Record
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

OFFLINE, DAMAGED = "offline", "damaged"
GZIP = 1
# The first batch decompresses to more than the lowered limit of the test.
LARGE, LIMIT = 20_000, 5_000
WITHOUT_LEADER = "Records of partitions without a running leader are missing: 1."
UNDECODED = "Records of 1 batches that cannot be decoded are missing."


@dataclass(frozen=True)
class Half:
    """A cluster of which one broker is down: partition 1 has no running leader."""

    connection: ClusterConnection
    session: ConsoleSession


@pytest.fixture(scope="module")
def half() -> Iterator[Half]:
    """Two brokers, of which the second is killed, with a console."""
    former = passwords.COST, passwords.PARALLEL
    passwords.COST, passwords.PARALLEL = 16, 1
    with Cluster(brokers=2) as cluster:
        with cluster.admin() as brokers:
            create_topic(brokers, OFFLINE, assignments=[[1], [2]])
            create_topic(brokers, DAMAGED, assignments=[[1]])
            now_ms = int(time.time() * 1000)
            for number in range(2):
                append_batch(brokers, OFFLINE, number, [Record(b"k", b'{"n":1}', (), now_ms)])
            for size in (LARGE, 1):
                rows = [Record(b"k", b"x" * size, (), now_ms)]
                append_batch(brokers, DAMAGED, 0, rows, codec=GZIP)
        cluster.kill(2)
        clusters = (ClusterSettings("local", cluster.bootstrap),)
        settings = ConsoleSettings(
            clusters, ":memory:", port=0, first_password=PASSWORD, sample_s=3600.0
        )
        server = ConsoleServer(settings)
        server.start()
        session = ConsoleSession(server.url)
        session.login("admin", PASSWORD)
        connection = ClusterConnection(clusters[0])
        yield Half(connection, session)
        connection.close()
        server.stop()
    passwords.COST, passwords.PARALLEL = former


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that decompress to more are skipped, as those that are damaged."""
    monkeypatch.setattr(scanning, "BATCH_BYTES_MAX", LIMIT)


def _sql(half: Half, topic: str) -> QueryResult:
    reader = Reader("ada", "session", Role.VIEWER, ())
    return Queries(RealClock()).run(half.connection, reader, f"SELECT _offset FROM {topic}")


@pytest.mark.parametrize("seek", [Seek.OLDEST, Seek.NEWEST])
def test_a_search_names_partitions_without_a_leader(half: Half, seek: Seek) -> None:
    """The records of the others are returned, also from a position."""
    result = browse(half.connection, BrowseRequest(OFFLINE, seek=seek))
    assert [row.partition for row in result.rows] == [0]
    assert result.unread_partitions == (1,)
    continued = BrowseRequest(OFFLINE, seek=Seek.OLDEST, positions=((0, 0),))
    assert browse(half.connection, continued).unread_partitions == ()


def test_statistics_and_sql_name_partitions_without_a_leader(half: Half) -> None:
    """A count of the other partitions is not the count of the topic."""
    statistics = read_statistics(half.connection, OFFLINE)
    assert (statistics.scanned, statistics.unread_partitions) == (1, (1,))
    (read,) = _sql(half, OFFLINE).topics
    assert (read.records, read.unread_partitions, read.is_complete) == (1, (1,), False)


@pytest.mark.parametrize("seek", [Seek.OLDEST, Seek.NEWEST])
def test_batches_that_cannot_be_decoded_are_counted(half: Half, limited: None, seek: Seek) -> None:
    """Search, statistics and SQL have the other records, and count the batch once."""
    result = browse(half.connection, BrowseRequest(DAMAGED, seek=seek))
    assert ([row.offset for row in result.rows], result.damaged_batches) == ([1], 1)
    statistics = read_statistics(half.connection, DAMAGED)
    assert (statistics.scanned, statistics.damaged_batches) == (1, 1)
    (read,) = _sql(half, DAMAGED).topics
    assert (read.records, read.damaged_batches, read.is_complete) == (1, 1, False)


@pytest.mark.parametrize(("topic", "note"), [(OFFLINE, WITHOUT_LEADER), (DAMAGED, UNDECODED)])
def test_pages_say_which_records_are_missing(
    half: Half, limited: None, topic: str, note: str
) -> None:
    """List, statistics, SQL, and the search through all records."""
    path = f"/c/local/topics/{topic}"
    assert note in half.session.get(f"{path}/messages?seek=oldest").text
    assert note in half.session.get(f"{path}/statistics?scan=10000").text
    assert note in half.session.post("/c/local/sql", "run", {"sql": f"SELECT * FROM {topic}"}).text
    name, data = list(half.session.events(f"{path}/search.events?seek=oldest"))[-1]
    assert (name, data) == ("end", {"note": note})


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_download_of_a_partition_without_a_leader_is_refused(half: Half, form: str) -> None:
    """A file cannot say that it lacks records; other partitions can be chosen."""
    path = f"/c/local/topics/{OFFLINE}/messages.{form}?seek=oldest"
    refused = half.session.get(path)
    assert refused.status == 400
    assert f"{OFFLINE}-1 has no running leader" in refused.text
    assert half.session.get(f"{path}&partition=0").status == 200


def test_a_download_with_an_undecoded_batch_breaks_off(half: Half, limited: None) -> None:
    """The records that can be read are in the file, whose end is missing."""
    path = f"/c/local/topics/{DAMAGED}/messages.jsonl?seek=oldest"
    with pytest.raises(IncompleteRead) as raised:
        half.session.get(path)
    assert [json.loads(line)["offset"] for line in raised.value.partial.splitlines()] == [1]
