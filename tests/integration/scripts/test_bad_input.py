"""Files and values that a script cannot use change nothing in a running cluster."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from ottla.tools.main import run
from ottla_scripts import entry
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_LATIN = b"\xfcber\n"
_DELETE = ["kafka-delete-records", "--offset-json-file"]
_ELECT = ["kafka-leader-election", "--election-type", "preferred", "--path-to-json-file"]
_PREFERRED = ["kafka-preferred-replica-election", "--path-to-json-file"]
_REASSIGN = ["kafka-reassign-partitions", "--execute", "--reassignment-json-file"]
_GENERATE = [
    "kafka-reassign-partitions", "--generate", "--broker-list", "1", "--topics-to-move-json-file",
]  # fmt: skip
_RESET = [
    "kafka-consumer-groups", "--reset-offsets", "--group", "g", "--execute", "--from-file",
]  # fmt: skip
_ROW = '"topic": "o", "partition": 0'


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster(options={"offsets.topic.num.partitions": "1"}) as cluster:
        cluster.create_topic("o", partitions=1)
        produce(cluster, "o", [b"1", b"2", b"3"])
        yield cluster


def _starts(cluster: Cluster) -> int:
    with cluster.admin() as brokers:
        key = ("o", 0)
        return offsets.list_offsets(brokers, {key: offsets.EARLIEST})[key].offset


def _refused(line: list[str], cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a script that must fail, and return what it printed."""
    # As with Apache Kafka, kafka-consumer-groups succeeds after such a sentence.
    expected = {0, 1} if line[0] == "kafka-consumer-groups" else {1}
    assert entry.run(line[0], [*line[1:], "--bootstrap-server", cluster.bootstrap]) in expected
    assert _starts(cluster) == 0
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.mark.parametrize(
    ("line", "text", "sentence"),
    [
        (_DELETE, '{"topic": "o", "partition": false, "offset": 1}', 'a field "partition" (int32)'),
        (_DELETE, f'{{{_ROW}, "offset": true}}', 'a field "offset" (int64)'),
        (_DELETE, f'{{{_ROW}, "offset": 9223372036854775808}}', 'a field "offset" (int64)'),
        (_DELETE, f'{{{_ROW}, "offset": 1.5}}', 'a field "offset" (int64)'),
        (_DELETE, "7", 'a field "topic"'),
        (_ELECT, '{"topic": "o", "partition": 2147483648}', 'a field "partition" (int32)'),
        (_ELECT, '{"topic": "o", "partition": false}', 'a field "partition" (int32)'),
        (_PREFERRED, '{"topic": "o", "partition": true}', 'a field "partition" (int32)'),
        (_REASSIGN, f'{{{_ROW}, "replicas": [true]}}', 'a field "replicas" with broker ids'),
        (_REASSIGN, f'{{{_ROW}, "replicas": [1], "log_dirs": 5}}', "must be a list of folders"),
        (_REASSIGN, f'{{{_ROW}, "replicas": [1, 2], "log_dirs": [1, 2]}}', "must be a list"),
    ],
)  # fmt: skip
def test_row_of_a_json_file_with_a_wrong_value(
    line: list[str],
    text: str,
    sentence: str,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A boolean, a fraction and a number that does not fit are no numbers."""
    file = tmp_path / "rows.json"
    file.write_text(f'{{"version": 1, "partitions": [{text}]}}')
    assert sentence in _refused([*line, str(file)], cluster, capsys)


@pytest.mark.parametrize("line", [_DELETE, _ELECT, _PREFERRED, _REASSIGN, _GENERATE])
def test_json_file_whose_list_is_a_number(
    line: list[str], cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the field."""
    file = tmp_path / "rows.json"
    file.write_text('{"version": 1, "partitions": 5, "topics": 5}')
    assert "is 5: write a list" in _refused([*line, str(file)], cluster, capsys)


@pytest.mark.parametrize(
    "line",
    [
        _DELETE,
        _ELECT,
        _PREFERRED,
        _REASSIGN,
        _GENERATE,
        _RESET,
        ["kafka-configs", "--alter", "--topic", "o", "--add-config-file"],
        ["kafka-producer-perf-test", "--topic", "o", "--num-records", "1", "--throughput", "-1",
         "--payload-file"],
        ["kafka-streams-application-reset", "--application-id", "a", "--input-topics", "o",
         "--from-file"],
    ],
)  # fmt: skip
def test_file_that_is_not_utf8(
    line: list[str], cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the file and the byte."""
    file = tmp_path / "latin"
    file.write_bytes(_LATIN)
    errors = _refused([*line, str(file)], cluster, capsys)
    assert f"{file}, line 1: byte 0xfc is not UTF-8: save the file as UTF-8 text" in errors


def test_group_reset_to_a_file_that_is_not_utf8(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ottla` has the same sentence."""
    file = tmp_path / "latin"
    file.write_bytes(_LATIN)
    line = ["group", "reset", "g", "--from-file", str(file), "--bootstrap", cluster.bootstrap]
    assert run(line) == 1
    assert "byte 0xfc is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "No content to map due to end-of-input"),
        (
            "o,x,1",
            'Cannot deserialize value of type `int` from String "x": not a valid `int` value',
        ),
        ("o,0,9223372036854775808", "Numeric value (9223372036854775808) out of range of long"),
        ("o,2147483648,1", "Numeric value (2147483648) out of range of int"),
        ("o,0,1,2", "Too many entries: expected at most 3"),
    ],
)
def test_reset_from_a_file_with_a_line_of_another_form(
    line: str, reason: str, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence is the Java tool's; no offset is committed."""
    file = tmp_path / "plan.csv"
    file.write_text(f"o,0,2\n{line}\no,0,1\n")
    assert reason in _refused([*_RESET, str(file)], cluster, capsys)
    with cluster.admin() as brokers:
        assert offsets.committed_offsets(brokers, "g") == {}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("kafka-get-offsets --topic o --time 99999999999999999999", "Malformed time argument"),
        ("kafka-topics --create --topic p --replica-assignment 2147483648",
         'For input string: "2147483648"'),
        ("kafka-get-offsets --topic o --time -9223372036854775809", "Malformed time argument"),
        ("kafka-consumer-groups --reset-offsets --group g --topic o --by-duration "
         "P99999999999999999999D", "Text cannot be parsed to a Duration"),
        ("kafka-streams-application-reset --application-id a --input-topics o --by-duration "
         "P99999999999999999999D", "Text cannot be parsed to a Duration"),
        ("kafka-consumer-groups --delete-offsets --group g --topic o:99999999999",
         "Invalid partition '99999999999'"),
        ("kafka-configs --describe --entity-type brokers --entity-name=--5",
         "must be a valid integer broker id, but it is: --5"),
        ("kafka-configs --describe --entity-type brokers --entity-name=99999999999",
         "must be a valid integer broker id, but it is: 99999999999"),
    ],
)  # fmt: skip
def test_value_that_is_too_large(
    line: str, sentence: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number that no request can contain is an error of the command line."""
    assert sentence in _refused(line.split(), cluster, capsys)


@pytest.mark.parametrize(
    "line",
    [
        "consume o -o @{0}",
        "consume o -o {0}",
        "topic search o -s 1 -o @{0}",
        "topic trim o --to @{0} --yes",
        "topic trim o --to {0} --yes",
        "group reset g --topic o --to @{0} --execute",
        "group reset g --topic o --to -{0} --execute",
        "group reset g --topic o --to-datetime {0} --execute",
        "group reset g --topic o --by-duration P{0}D --execute",
    ],
)
def test_expression_that_is_too_large(
    line: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the largest value, and no record is deleted."""
    words = line.format("99999999999999999999").split()
    assert run([*words, "--bootstrap", cluster.bootstrap]) == 2
    assert "9223372036854775807" in capsys.readouterr().err
    assert _starts(cluster) == 0


@pytest.mark.parametrize("topic", ["x" * 250, "a b", "é"], ids=["long", "space", "letter"])
@pytest.mark.parametrize(
    "line",
    [
        "kafka-console-producer",
        "kafka-console-consumer --timeout-ms 20000",
        "kafka-console-consumer --timeout-ms 20000 --group g",
    ],
)
def test_invalid_name_of_a_topic_is_the_sentence_of_the_java_client(
    cluster: Cluster,
    line: str,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It names the topic, whether the client, librdkafka or the broker has refused it."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    script, *words = line.split()
    address = ["--bootstrap-server", cluster.bootstrap, "--topic", topic]
    # Apache Kafka's consumer logs the error, and succeeds.
    assert entry.run(script, [*words, *address]) == (script == "kafka-console-producer")
    sentence = f"org.apache.kafka.common.errors.InvalidTopicException: Invalid topics: [{topic}]"
    assert sentence in capsys.readouterr().err
