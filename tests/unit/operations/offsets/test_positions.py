"""Start and end positions of reading."""

import pytest

from ottla.operations.offsets.positions import Anchor, Position, parse_position, parse_range

NOW_MS = 1_771_070_400_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", Position(Anchor.BEGINNING)),
        ("+5", Position(Anchor.HEAD, 5)),
        ("earliest", Position(Anchor.BEGINNING)),
        ("end", Position(Anchor.END)),
        ("stored", Position(Anchor.STORED)),
        ("42", Position(Anchor.OFFSET, 42)),
        ("-10", Position(Anchor.TAIL, 10)),
        ("@1771070400000", Position(Anchor.TIME, NOW_MS)),
        ("@2026-02-14", Position(Anchor.TIME, NOW_MS - 43_200_000)),
        ("@-1h", Position(Anchor.TIME, NOW_MS - 3_600_000)),
    ],
)
def test_positions_are_words_offsets_counts_or_times(text: str, position: Position) -> None:
    """Positions are kcat's words, offsets, counts from the end, or times in all supported forms."""
    assert parse_position(text, NOW_MS) == position


@pytest.mark.parametrize("text", ["", "first", "1.5", "--1", "+"])
def test_invalid_position_is_an_error_with_examples(text: str) -> None:
    """The error has an example of each form."""
    with pytest.raises(ValueError, match="use beginning, end, stored"):
        parse_position(text, NOW_MS)


def test_two_positions_are_a_range() -> None:
    """The first position is the start, the second the end; kcat's s@ and e@ are explicit."""
    start, end = parse_range(["5", "@-1h"], NOW_MS)
    assert (start, end) == (Position(Anchor.OFFSET, 5), Position(Anchor.TIME, NOW_MS - 3_600_000))
    start, end = parse_range(["e@1771070400000", "s@1771070400000"], NOW_MS)
    assert start == end == Position(Anchor.TIME, NOW_MS)
    assert parse_range([], NOW_MS) == (None, None)


@pytest.mark.parametrize("texts", [["1", "2", "3"], ["1", "beginning"], ["1", "stored"]])
def test_invalid_range_is_rejected(texts: list[str]) -> None:
    """Three positions, or an end before the start, are rejected."""
    with pytest.raises(ValueError, match=r"twice at most|cannot end at"):
        parse_range(texts, NOW_MS)
