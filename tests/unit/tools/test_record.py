"""`ottla produce` and `ottla consume` against a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster


def test_lines_go_in_and_come_out(run: Any) -> None:
    """A topic is made on first use; the defaults of both verbs fit each other."""
    assert run("produce", "t", stdin=b"one\ntwo\nthree").code == 0
    assert run("consume", "t", "-e").out == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_comes_back(run: Any, ottla_cluster: Cluster, codec: str) -> None:
    """And is what the segment holds."""
    text = b"".join(b"line %d\n" % number for number in range(200))
    run("produce", "t", "-z", codec, stdin=text)
    assert run("consume", "t", "-e").out == text
    (segment,) = (ottla_cluster.data / "t-0").glob("*.log")
    dumped = run("log", "dump", str(segment), "--output", "json").out.splitlines()
    # librdkafka leaves a batch of one record as it is, if a codec would make it longer.
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


def test_equal_keys_share_a_partition_with_kafkas_other_clients(run: Any) -> None:
    """murmur2 of "21" modulo 4 is 3 in every client of Apache Kafka."""
    run("topic", "create", "t", "--partitions", "4")
    run("produce", "t", "-k", "21", stdin=b"a\nb\n")
    done = run("consume", "t", "-e", "-f", r"%p %s\n").out.split()
    assert len({*done[0::2]}) == 1
    assert done[1::2] == [b"a", b"b"]


def test_a_partition_can_be_chosen(run: Any) -> None:
    """For writing and for reading."""
    run("topic", "create", "t", "--partitions", "3")
    run("produce", "t", "-p", "2", stdin=b"two")
    run("produce", "t", "-p", "0", stdin=b"zero")
    assert run("consume", "t", "-e", "-p", "2").out == b"two\n"
    assert run("consume", "t", "-e", "-p", "1").out == b""
    missing = run("consume", "t", "-e", "-p", "3")
    assert (missing.code, "has no partition 3, only 0 to 2" in missing.errors) == (1, True)


@pytest.mark.parametrize(
    ("words", "values"),
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
def test_reading_starts_and_ends_where_it_is_told(run: Any, words: list[str], values: str) -> None:
    """Offsets, counts from the end, and times; outside of the log means its nearest end."""
    run("produce", "t", "-D", ",", stdin=b"0,1,2,3,4,5,6,7,8,9")
    assert run("consume", "t", "-e", "-D", "", *words).out.decode() == values


def test_the_envelope_comes_with_j_and_with_output_json(run: Any) -> None:
    """One JSON object a line."""
    run("produce", "t", "-k", "k", stdin=b"v")
    lines = {run("consume", "t", "-e", *words).out for words in (["-J"], ["--output", "json"])}
    (line,) = lines
    envelope = json.loads(line)
    assert (envelope["topic"], envelope["key"], envelope["payload"]) == ("t", "k", "v")


def test_a_group_goes_on_where_it_was(run: Any) -> None:
    """What was written out is committed, also after -c."""
    run("produce", "t", stdin=b"1\n2\n3\n")
    assert run("consume", "t", "--group", "g", "-c", "2").out == b"1\n2\n"
    assert run("consume", "t", "--group", "g", "-e").out == b"3\n"
    assert run("consume", "t", "--group", "g", "-e").out == b""


@pytest.mark.parametrize("words", [["-o", "5"], ["-o", "@-1h"], ["-p", "0"]])
def test_a_group_has_its_own_places(run: Any, words: list[str]) -> None:
    """Where it reads is what it has committed; the error names the command that moves it."""
    done = run("consume", "t", "--group", "g", *words)
    assert done.code == 2
    assert "ottla group reset" in done.errors


def test_stored_offsets_need_a_group(run: Any) -> None:
    """Only groups store any."""
    assert "name it with --group" in run("consume", "t", "-o", "stored").errors


def test_files_are_records_or_lines_of_records(run: Any, tmp_path: Path) -> None:
    """A file is one record; with -l its lines are."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb")
    second.write_bytes(b"c\n")
    run("produce", "whole", str(first), str(second))
    assert run("consume", "whole", "-e", "-f", "<%s>").out == b"<a\nb><c\n>"
    run("produce", "lines", "-l", str(first), str(second))
    assert run("consume", "lines", "-e", "-f", "<%s>").out == b"<a><b><c>"


def test_producing_stops_at_a_count(run: Any) -> None:
    """The rest of the input is left alone."""
    run("produce", "t", "-c", "2", stdin=b"1\n2\n3\n")
    assert run("consume", "t", "-e").out == b"1\n2\n"


def test_scripts_hear_how_much_was_written(run: Any) -> None:
    """Without --output json nothing is said to a pipe."""
    assert run("produce", "t", stdin=b"1\n2\n").out == b""
    done = run("produce", "t", "--output", "json", stdin=b"1\n2\n")
    assert done.json == {"topic": "t", "records": 2}


def test_a_record_that_is_too_large_is_an_error(run: Any) -> None:
    """What was not written is never passed over in silence."""
    run("topic", "create", "t", "-c", "max.message.bytes=1000")
    done = run("produce", "t", "-D", ",", stdin=b"x" * 5000)
    assert (done.code, "larger than max.message.bytes" in done.errors) == (1, True)
    done = run("produce", "t", "-D", ",", stdin=b"x" * 2_000_000)
    assert (done.code, "2000000 bytes is more than librdkafka's" in done.errors) == (1, True)


def test_a_topic_that_does_not_exist_is_told(run: Any) -> None:
    """Reading does not make one."""
    assert "There is no topic 'nope'" in run("consume", "nope").errors
    assert "There is no topic 'nope'" in run("consume", "nope", "--group", "g").errors
    assert run("topic", "list").rows == []


def test_options_of_librdkafka_can_be_set(run: Any) -> None:
    """A wrong one is named."""
    run("produce", "t", "-X", "linger.ms=0", stdin=b"1")
    assert run("consume", "t", "-e", "-X", "check.crcs=true").out == b"1\n"
    done = run("produce", "t", "-X", "no.such=1", stdin=b"1")
    assert (done.code, "no.such" in done.errors) == (1, True)
