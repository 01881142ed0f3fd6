"""Transcripts are read, shown and written without loss, and errors in them have a position."""

from pathlib import Path

import pytest

from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartitionResponse
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.records import batch
from tests.compat.recorded import batches, messages, notation, ours, transcript
from tests.compat.recorded.notation import NotationError, Word
from tests.compat.recorded.player import Played
from tests.compat.recorded.record import FOLDER
from tests.compat.recorded.symbols import Symbols
from tests.compat.recorded.transcript import Answers, TranscriptError

pytestmark = pytest.mark.slow

VALUES = [
    ('{error_code: NONE, topics: [{name: "t", id: $topic_id:1}]}', dict),
    ('[1, -2, 2.5, true, false, null, "a\\"b\\né"]', list),
    ('x"00ff"', bytes),
    ("{}", dict),
    ("[]", list),
]


@pytest.mark.parametrize(("text", "kind"), VALUES)
def test_values_are_written_as_they_were_read(text: str, kind: type) -> None:
    """Each value has one notation."""
    value = notation.parse(text)
    assert isinstance(value, kind)
    assert notation.parse(notation.render(value)) == value
    assert notation.render(value) == text


@pytest.mark.parametrize("text", ["{", "{a 1}", "[1 2]", "}", "", '{"a": 1}', "1 2", '"open'])
def test_invalid_value_is_rejected(text: str) -> None:
    """A text that is not a value is rejected, with the position of the error."""
    with pytest.raises(NotationError):
        notation.parse(text)


def test_symbols_are_numbered_and_resolved() -> None:
    """Symbols are numbered by kind in the order of appearance; other words generate a value."""
    symbols = Symbols(port=9092)
    first, second = symbols.name("topic_id", b"a" * 16), symbols.name("topic_id", b"b" * 16)
    assert (first, second) == ("$topic_id:1", "$topic_id:2")
    assert symbols.name("topic_id", b"a" * 16) == first
    assert symbols.value(second) == b"b" * 16
    assert symbols.name("port", 9092) == "$port"
    made_up = symbols.value(Word("$topic_id:none"))
    assert len(made_up) == 16
    assert symbols.value(Word("$topic_id:none")) == made_up
    assert symbols.name("topic_id", b"c" * 16) == "$topic_id:3"


def test_text_shows_ids_and_versions_as_symbols() -> None:
    """A UUID in a text is shown as a member, the request's version as `$v`."""
    symbols = Symbols()
    member = "client-0f0e0d0c-0b0a-0908-0706-050403020100"
    assert symbols.text(member) == "client-$member:1"
    assert symbols.filled("client-$member:1", 3) == member
    assert symbols.filled("topic-$v", 3) == "topic-3"
    assert symbols.text("topic-3") == "topic-$v"


def test_request_drops_fields_that_its_version_does_not_have() -> None:
    """A request drops fields that its version does not have; a field of no version is an error."""
    written = {"group_id": "g", "group_instance_id": "i", "member_id": "m"}
    old = messages.build(HeartbeatRequest, 0, written, Symbols())
    new = messages.build(HeartbeatRequest, 4, written, Symbols())
    assert old == HeartbeatRequest(group_id="g", member_id="m")
    assert new == HeartbeatRequest(group_id="g", member_id="m", group_instance_id="i")
    with pytest.raises(AssertionError, match="no_such_field"):
        messages.build(HeartbeatRequest, 0, {"no_such_field": 1}, Symbols())


def test_response_shows_fields_that_are_not_default_sorted_by_key() -> None:
    """A response shows ids and times as symbols, and errors by their names."""
    symbols = Symbols()
    topics = [MetadataResponseTopic(name=name, topic_id=name.encode() * 16) for name in "ba"]
    topics[1].error_code = 3
    output = messages.show(MetadataResponse(topics=topics, throttle_time_ms=7), 12, symbols)
    assert notation.render(output) == (
        "{topics: [{error_code: UNKNOWN_TOPIC_OR_PARTITION, name: "
        '"a", topic_id: $topic_id:1}, {name: "b", topic_id: $topic_id:2}]}'
    )
    now = ListOffsetsPartitionResponse(timestamp=symbols.value(Word("$now")), offset=2)
    assert messages.show(now, 4, symbols)["timestamp"] == Word("$now")


def test_batches_can_be_valid_and_invalid() -> None:
    """The checksum of a changed header is computed again, unless `crc` is written."""
    symbols = Symbols()
    plain = batches.encode(
        [{"values": ["a", None], "keys": ["k", None], "leader_epoch": 0}], symbols, 9
    )
    assert batches.show(plain, symbols) == [{"keys": ["k", None], "values": ["a", None]}]
    odd = batches.encode([{"values": ["a"], "records_count": 7}], symbols, 9)
    header = batch.parse_header(odd, 0)
    assert header.records_count == 7
    batch.check_crc(odd, 0, header)
    bad = batches.encode([{"values": ["a"], "crc": 0}], symbols, 9)
    assert batch.parse_header(bad, 0).crc == 0
    assert batches.show(plain + plain[:5], symbols)[1] == {"partial_bytes": 5}


TEXT = """# A remark
option group.max.size=2
== First
+ topic t 2 a=b
> Heartbeat 0-2,4 {group_id: "g",
  member_id: "m"}
< 0-1,4 {error_code: UNKNOWN_MEMBER_ID}
< 2 closed
<3.9.2 1 {}
! because
= 2 {}
b~ Heartbeat 1 {group_id: "g"}
# Between
b?
< nothing
"""


def test_a_transcript_is_written_as_it_was_read(tmp_path: Path) -> None:
    """The recorder changes responses only."""
    path = tmp_path / "t.txt"
    path.write_text(TEXT)
    script = transcript.read(path)
    transcript.write(script)
    assert path.read_text() == TEXT
    first, second = script.exchanges()
    assert script.options == {"group.max.size": "2"}
    assert (first.versions, first.reason) == ([0, 1, 2, 4], "! because")
    assert (first.expected(2), first.expected(4)) == ("{}", "{error_code: UNKNOWN_MEMBER_ID}")
    assert first.older == {1: "{}"}
    assert (second.connection, second.is_waited_for, second.modern) == ("b", False, {1: "nothing"})


def test_all_transcripts_are_as_the_recorder_would_write_them(tmp_path: Path) -> None:
    """All transcripts have the grouping, order and white space of the recorder."""
    for source in FOLDER.glob("*.txt"):
        script = transcript.read(source)
        script.path = tmp_path / source.name
        transcript.write(script)
        assert script.path.read_text() == source.read_text(), source.name


@pytest.mark.parametrize(
    "line",
    ["< {}", "> NoSuchApi 0 {}", "> Heartbeat zero {}", "what?", "c?", '> Heartbeat 0 {"a": 1}'],
)
def test_line_that_is_not_understood_is_reported(tmp_path: Path, line: str) -> None:
    """A line that is not understood is reported with file and number."""
    path = tmp_path / "t.txt"
    path.write_text(f"== First\n{line}\n")
    with pytest.raises(TranscriptError, match=r"t\.txt:2"):
        transcript.read(path)


@pytest.mark.parametrize(
    ("responses", "problem"),
    [
        ({0: "{error_code: UNKNOWN_MEMBER_ID}", 2: "{}"}, None),
        ({0: "{error_code: UNKNOWN_MEMBER_ID, error_message: text}"}, None),
        ({0: "{error_code: ILLEGAL_GENERATION}"}, "v0 expected"),
        ({2: "closed"}, "remove the deviation"),
        ({2: "nothing"}, "v2 expected"),
    ],
)
def test_only_unexplained_differences_are_found(
    tmp_path: Path, responses: Answers, problem: str | None
) -> None:
    """A deviation must exist and be the recorded one; an additional error message is allowed."""
    path = tmp_path / "t.txt"
    path.write_text(TEXT.split("b~")[0])
    script = transcript.read(path)
    actual = ours.differences(script, Played({script.exchanges()[0].line: responses}))
    assert bool(actual) == (problem is not None)
    assert problem is None or problem in actual[-1]
