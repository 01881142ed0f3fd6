"""`ottla produce` and `ottla consume` against a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster


def test_produced_lines_are_consumed(run: Any) -> None:
    """The topic is created on first use, and the defaults of both commands match."""
    assert run("produce", "t", stdin=b"one\ntwo\nthree").code == 0
    assert run("consume", "t", "-e").out == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_can_be_read(run: Any, ottla_cluster: Cluster, codec: str) -> None:
    """The segment has batches of this codec."""
    text = b"".join(b"line %d\n" % number for number in range(200))
    run("produce", "t", "-z", codec, stdin=text)
    assert run("consume", "t", "-e").out == text
    (segment,) = (ottla_cluster.data / "t-0").glob("*.log")
    dumped = run("log", "dump", str(segment), "--output", "json").out.splitlines()
    # Librdkafka does not compress a batch of one record if that would make it longer.
    assert {json.loads(line)["codec"] for line in dumped} - {"none"} == {codec} - {"none"}


def test_keys_headers_and_nulls_survive(run: Any) -> None:
    """Every part of a record can be written and read."""
    run("produce", "t", "-K:", "-Z", "-H", "a=1", "-H", "b", stdin=b"k:v\ngone:\n:nokey\n")
    done = run("consume", "t", "-e", "-f", r"%k|%K|%s|%S|%h\n")
    assert done.out.decode().splitlines() == [
        "k|1|v|1|a=1,b=NULL",
        "gone|4||-1|a=1,b=NULL",
        "|-1|nokey|5|a=1,b=NULL",
    ]


def test_keys_are_partitioned_like_in_other_clients(run: Any) -> None:
    """In every client of Apache Kafka, murmur2 of "21" modulo 4 is 3."""
    run("topic", "create", "t", "--partitions", "4")
    run("produce", "t", "-k", "21", stdin=b"a\nb\n")
    done = run("consume", "t", "-e", "-f", r"%p %s\n").out.split()
    assert len({*done[0::2]}) == 1
    assert done[1::2] == [b"a", b"b"]


def test_partition_can_be_selected(run: Any) -> None:
    """The partition can be selected for writing and for reading."""
    run("topic", "create", "t", "--partitions", "3")
    run("produce", "t", "-p", "2", stdin=b"two")
    run("produce", "t", "-p", "0", stdin=b"zero")
    assert run("consume", "t", "-e", "-p", "2").out == b"two\n"
    assert run("consume", "t", "-e", "-p", "1").out == b""
    missing = run("consume", "t", "-e", "-p", "3")
    assert (missing.code, "has no partition 3, only 0 to 2" in missing.errors) == (1, True)


def test_a_partition_to_write_to_that_does_not_exist_is_named(run: Any) -> None:
    """The error has the topic and its partitions, and no record is written."""
    run("topic", "create", "t", "--partitions", "3")
    missing = run("produce", "t", "-p", "3", stdin=b"three")
    assert missing.code == 1
    assert "Topic 't' has no partition 3, only 0 to 2" in missing.errors
    assert run("consume", "t", "-e").out == b""
    assert run("produce", "new", "-p", "0", stdin=b"zero").code == 0


@pytest.mark.parametrize(
    ("command_line", "values"),
    [
        (["-o", "beginning"], "0123456789"),
        (["-o", "7"], "789"),
        (["-o", "-2"], "89"),
        (["-o", "-100"], "0123456789"),
        (["-o", "end"], ""),
        (["-o", "3", "-o", "5"], "34"),
        (["-o", "99"], ""),
        (["-c", "4"], "0123"),
        (["-o", "@2020-01-01"], "0123456789"),
        (["-o", "@-1h", "-c", "1"], "0"),
        (["-o", "@now"], ""),
        (["-o", "s@0", "-o", "e@1"], ""),
    ],
)
def test_reading_starts_and_ends_at_the_given_positions(
    run: Any, command_line: list[str], values: str
) -> None:
    """Positions are offsets, counts from the end, and times; outside of the log the nearest end is
    used.
    """
    run("produce", "t", "-D", ",", stdin=b"0,1,2,3,4,5,6,7,8,9")
    assert run("consume", "t", "-e", "-D", "", *command_line).out.decode() == values


def test_envelope_is_selected_by_j_or_output_json(run: Any) -> None:
    """The output has one JSON object a line."""
    run("produce", "t", "-k", "k", stdin=b"v")
    lines = {run("consume", "t", "-e", *flags).out for flags in (["-J"], ["--output", "json"])}
    (line,) = lines
    envelope = json.loads(line)
    assert (envelope["topic"], envelope["key"], envelope["payload"]) == ("t", "k", "v")


def test_group_resumes_at_its_committed_offsets(run: Any) -> None:
    """Records that were written to the output are committed, also after -c."""
    run("produce", "t", stdin=b"1\n2\n3\n")
    assert run("consume", "t", "--group", "g", "-c", "2").out == b"1\n2\n"
    assert run("consume", "t", "--group", "g", "-e").out == b"3\n"
    assert run("consume", "t", "--group", "g", "-e").out == b""


@pytest.mark.parametrize("command_line", [["-o", "5"], ["-o", "@-1h"], ["-p", "0"]])
def test_group_allows_no_positions(run: Any, command_line: list[str]) -> None:
    """A group reads from its committed offsets; the error names the command that moves them."""
    done = run("consume", "t", "--group", "g", *command_line)
    assert done.code == 2
    assert "ottla group reset" in done.errors


def test_stored_offsets_need_a_group(run: Any) -> None:
    """Only groups store offsets."""
    assert "name it with --group" in run("consume", "t", "-o", "stored").errors


def test_files_are_records_or_lines_of_records(run: Any, tmp_path: Path) -> None:
    """A file is one record; with -l each of its lines is one."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb")
    second.write_bytes(b"c\n")
    run("produce", "whole", str(first), str(second))
    assert run("consume", "whole", "-e", "-f", "<%s>").out == b"<a\nb><c\n>"
    run("produce", "lines", "-l", str(first), str(second))
    assert run("consume", "lines", "-e", "-f", "<%s>").out == b"<a><b><c>"


def test_producing_stops_at_a_count(run: Any) -> None:
    """The rest of the input is not read."""
    run("produce", "t", "-c", "2", stdin=b"1\n2\n3\n")
    assert run("consume", "t", "-e").out == b"1\n2\n"


def test_number_of_written_records_is_printed_as_json(run: Any) -> None:
    """Without --output json the command prints nothing to a pipe."""
    assert run("produce", "t", stdin=b"1\n2\n").out == b""
    done = run("produce", "t", "--output", "json", stdin=b"1\n2\n")
    assert done.json == {"topic": "t", "records": 2}


def test_too_large_record_is_an_error(run: Any) -> None:
    """A record that was not written is never ignored."""
    run("topic", "create", "t", "-c", "max.message.bytes=1000")
    done = run("produce", "t", "-D", ",", stdin=b"x" * 5000)
    assert (done.code, "larger than max.message.bytes" in done.errors) == (1, True)
    done = run("produce", "t", "-D", ",", stdin=b"x" * 2_000_000)
    assert (done.code, "larger than max.message.bytes" in done.errors) == (1, True)
    limit = "message.max.bytes=1000000"
    done = run("produce", "t", "-X", limit, "-D", ",", stdin=b"x" * 2_000_000)
    assert (done.code, "2000000 bytes is more than librdkafka's" in done.errors) == (1, True)


@pytest.mark.parametrize("length", [250, 600])
@pytest.mark.parametrize(
    "verb", [["produce"], ["perf", "produce"], ["perf", "verifiable-produce"], ["perf", "latency"]]
)
def test_topic_whose_name_is_too_long_is_explained(run: Any, verb: list[str], length: int) -> None:
    """librdkafka refuses one that is much too long without a reason; the sentence shows its ends."""
    done = run(*verb, "a" * length, stdin=b"x\n")
    assert (done.code, done.out) == (1, b"")
    name = "a" * 250 if length == 250 else f"{'a' * 99}…{'a' * 18}"
    assert done.errors == (
        f"ottla: Topic '{name}': The topic name is not allowed, or the topic is internal: "
        "use 1 to 249 ASCII letters, digits, '.', '_' and '-'\n"
    )


def test_missing_topic_is_an_error(run: Any) -> None:
    """Reading does not create the topic."""
    assert "There is no topic 'nope'" in run("consume", "nope").errors
    assert "There is no topic 'nope'" in run("consume", "nope", "--group", "g").errors
    assert run("topic", "list").rows == []


def test_options_of_librdkafka_can_be_set(run: Any) -> None:
    """An invalid option is reported by name."""
    run("produce", "t", "-X", "linger.ms=0", stdin=b"1")
    assert run("consume", "t", "-e", "-X", "check.crcs=true").out == b"1\n"
    done = run("produce", "t", "-X", "no.such=1", stdin=b"1")
    assert (done.code, "no.such" in done.errors) == (1, True)


def test_new_topic_is_noted_on_standard_error(run: Any) -> None:
    """Its name may be a misspelt one; standard output is left to records and JSON."""
    done = run("produce", "new", stdin=b"x\n")
    assert (done.out, done.errors) == (b"", "Created topic new with 1 partition.\n")
    assert run("produce", "new", stdin=b"y\n").errors == ""


def test_topics_are_not_created_if_the_profile_or_the_option_says_so(
    run: Any, ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The option of the command has precedence; another address has nothing of the profile."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    bootstrap = ottla_cluster.bootstrap
    created = run("profile", "create", "live", "--bootstrap", bootstrap, "--create-topics", "no")
    assert created.code == 0
    assert run("produce", "a", "--create-topics", "no", stdin=b"x\n").code == 1
    assert run("produce", "a", stdin=b"x\n").code == 0
    monkeypatch.delenv("OTTLA_BOOTSTRAP")
    refused = run("produce", "b", stdin=b"x\n")
    assert refused.code == 1
    assert "`ottla topic list` lists the topics" in refused.errors
    assert run("produce", "b", "--create-topics", "yes", stdin=b"x\n").code == 0
    run("profile", "create", "live", "--bootstrap", bootstrap, "--force")
    assert run("produce", "c", stdin=b"x\n").code == 0


def test_empty_topic_is_read_to_its_end_with_a_note(run: Any) -> None:
    """An empty output may also be a wrong topic; -q prints only the records."""
    run("topic", "create", "t")
    done = run("consume", "t", "-e")
    assert (done.out, done.errors) == (b"", "0 records\n")
    assert run("consume", "t", "-e", "-q").errors == ""
