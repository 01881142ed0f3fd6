"""Conversion of input bytes to keys and values."""

import io

import pytest

from ottla.tools.record import lines
from ottla.tools.record.lines import Splitter, iterate_messages, parse_header


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"", []),
        (b"\n", [b""]),
    ],
)
def test_every_line_is_a_message(data: bytes, messages: list[bytes]) -> None:
    """The last line needs no delimiter, and an empty line is an empty message."""
    assert list(iterate_messages(io.BytesIO(data), b"\n")) == messages


def test_delimiter_can_span_two_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of reads and of messages are independent."""
    monkeypatch.setattr(lines, "_READ_BYTES", 3)
    assert list(iterate_messages(io.BytesIO(b"ab--cd-e--"), b"--")) == [b"ab", b"cd-e"]


def test_messages_are_returned_as_soon_as_they_are_complete() -> None:
    """A line that is typed on a terminal becomes a record at once."""

    class Terminal:
        def __init__(self) -> None:
            self.typed = [b"one\n", b"two\n", b""]

        def read1(self, size: int = -1, /) -> bytes:
            return self.typed.pop(0)

    terminal = Terminal()
    messages = iterate_messages(terminal, b"\n")
    assert next(messages) == b"one"
    assert terminal.typed == [b"two\n", b""]


@pytest.mark.parametrize(
    ("splitter", "message", "pair"),
    [
        (Splitter(), b"a:b", (None, b"a:b")),
        (Splitter(key_delimiter=b":"), b"a:b:c", (b"a", b"b:c")),
        (Splitter(key_delimiter=b":"), b"ab", (None, b"ab")),
        (Splitter(key_delimiter=b":"), b":b", (b"", b"b")),
        (Splitter(key_delimiter=b":", fixed_key=b"k"), b"ab", (b"k", b"ab")),
        (Splitter(fixed_key=b"k"), b"ab", (b"k", b"ab")),
        (Splitter(key_delimiter=b":", empty_is_null=True), b"a:", (b"a", None)),
        (Splitter(empty_is_null=True), b"", (None, None)),
    ],
)
def test_keys_and_nulls_follow_kcat_options(
    splitter: Splitter, message: bytes, pair: tuple[bytes | None, bytes | None]
) -> None:
    """The option -K splits at the first delimiter, -k sets a key, -Z writes tombstones."""
    assert splitter.split(message) == pair


def test_header_is_a_name_with_an_optional_value() -> None:
    """A header without an equals sign has a null value."""
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a=") == ("a", b"")
    assert parse_header("a") == ("a", None)
    with pytest.raises(ValueError, match="of the form name=value"):
        parse_header("=b")
