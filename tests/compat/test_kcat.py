"""`kcat` with `ottla up`: metadata, all codecs, groups, timestamps."""

import subprocess

import pytest

from ottla.client.brokers import Brokers
from ottla.client.producer.producer import Producer
from ottla.operations.mirror.copying import Mirror, MirrorSettings
from ottla.operations.mirror.once import RecordCopy, copy_topic
from ottla.operations.mirror.routes import Route
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing.process import BrokerProcess

pytestmark = [
    pytest.mark.compat,
    pytest.mark.needs("kcat"),
    pytest.mark.slow,
]


def _kcat(broker: BrokerProcess, *words: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["kcat", "-b", broker.bootstrap, *words],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_the_cluster_is_listed(broker: BrokerProcess, topic: str) -> None:
    """`kcat -L` shows brokers at the bootstrap address, and topics with leaders and replicas."""
    _kcat(broker, "-P", "-t", topic, stdin=b"1\n")
    listed = _kcat(broker, "-L").decode()
    assert f"broker 1 at {broker.bootstrap} (controller)" in listed
    assert f'topic "{topic}" with 1 partitions:' in listed
    assert "partition 0, leader 1, replicas: 1, isrs: 1" in listed


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_are_unchanged_with_every_codec(
    broker: BrokerProcess, topic: str, codec: str
) -> None:
    """Keys, values and headers keep their order."""
    lines = b"".join(b"key%d:value %d %s\n" % (row % 5, row, b"x" * 50) for row in range(500))
    _kcat(broker, "-P", "-t", topic, "-K:", "-z", codec, "-H", "a=1", stdin=lines)
    read = _kcat(broker, "-C", "-t", topic, "-e", "-q", "-K:")
    assert read == lines
    assert _kcat(broker, "-C", "-t", topic, "-c", "1", "-q", "-f", "%h %o") == b"a=1 0"


def test_group_resumes_from_committed_offset(broker: BrokerProcess, topic: str) -> None:
    """`kcat -G` commits when it leaves, and resumes from there, also after a restart of the broker."""
    arguments = ("-G", f"group-of-{topic}", "-q", "-X", "auto.offset.reset=earliest", topic)
    _kcat(broker, "-P", "-t", topic, stdin=b"1\n2\n3\n")
    assert _kcat(broker, "-c", "2", *arguments) == b"1\n2\n"
    broker.restart()
    assert _kcat(broker, "-e", *arguments) == b"3\n"


def test_reading_starts_at_offset_or_timestamp(broker: BrokerProcess, topic: str) -> None:
    """Reading starts at an offset, at the last N records, or at the timestamp of a record."""
    _kcat(broker, "-P", "-t", topic, stdin=b"0\n1\n2\n3\n")
    read = ("-C", "-t", topic, "-e", "-q")
    assert _kcat(broker, *read, "-o", "2") == b"2\n3\n"
    assert _kcat(broker, *read, "-o", "-1") == b"3\n"
    moments = _kcat(broker, *read, "-f", r"%T\n").split()
    assert _kcat(broker, *read, "-o", f"s@{moments[0].decode()}") == b"0\n1\n2\n3\n"
    late = int(moments[-1]) + 1
    decoded = _kcat(broker, "-Q", "-t", f"{topic}:0:{late}").decode()
    # No record is as late: librdkafka returns the end.
    assert decoded.split() == [topic, "[0]", "offset", "-1"]


def test_copies_have_the_records_of_their_source(broker: BrokerProcess, topic: str) -> None:
    """Readers see the same partitions, keys, headers, timestamps and null values in both copies."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(50):
            headers = [("h", b"%d" % number), ("h", None), ("\u00fc", b"\xff\x00")]
            value = None if number % 7 == 0 else b"value %d" % number
            key = None if number % 5 == 0 else b"key %d" % number
            producer.send(topic, value, key=key, headers=headers, timestamp=1_000 + number)
    by_page, by_verb = f"{topic}-page", f"{topic}-verb"
    connection = ClusterConnection(ClusterSettings("kcat", broker.bootstrap))
    copy_topic(connection, topic, by_page, RecordCopy(lambda _: None, lambda: None))
    connection.close()
    with Brokers(broker.bootstrap) as brokers:
        mirror = Mirror(brokers, brokers, [Route(topic, by_verb)], MirrorSettings(), print)
        mirror.run(_Never(), lambda _: None)
    form = r"%p %o %T %K %k %S %s %h\n"
    source, *copies = (
        _kcat(broker, "-C", "-t", name, "-e", "-q", "-f", form)
        for name in (topic, by_page, by_verb)
    )
    assert len(source.splitlines()) == 50
    assert b" -1 " in source
    assert copies == [source, source]


class _Never:
    """No request to stop."""

    requested = False

    def wait(self, seconds: float) -> None:
        """Return at once."""
