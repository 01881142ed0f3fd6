"""Fields of forms, tables of pages, and texts of numbers."""

import pytest

from ottla.base.errors import ConfigError
from ottla.console import formats
from ottla.console.fields import Fields
from ottla.console.model.messages.decoding import Decoded, Format
from ottla.console.pages.reassignments import _targets
from ottla.console.pages.topics.listing import parse_options
from ottla.console.pages.topics.messages import parse_time
from ottla.console.spreadsheets import csv_line
from ottla.console.tables import ROWS_PER_PAGE, arrange
from ottla.operations.numbers import INT_MAX, natural_number, whole_number


def test_wrong_values_are_reported_with_the_name_of_the_field() -> None:
    """The error says which field is wrong, and how."""
    fields = Fields("count=many&low=0&empty=+&pick=a&pick=b")
    with pytest.raises(ConfigError, match="'count' is 'many'"):
        fields.integer("count")
    with pytest.raises(ConfigError, match="least is 1"):
        fields.integer("low", least=1)
    with pytest.raises(ConfigError, match="most is 5"):
        Fields("high=6").integer("high", most=5)
    for large in ("9" * 19, "9" * 5000, "-" + "9" * 30):
        with pytest.raises(ConfigError, match="number is needed"):
            Fields(f"count={large}").integer("count")
    with pytest.raises(ConfigError, match="'empty' is empty"):
        fields.required("empty")
    assert fields.integer("absent", 7) == 7
    assert fields.all("pick") == ["a", "b"]


def test_a_form_with_too_many_fields_is_refused() -> None:
    """A hostile form costs no more than parsing its limit."""
    with pytest.raises(ConfigError, match="5000 fields"):
        Fields("&".join("a=1" for _ in range(6000)))


def test_rows_are_filtered_sorted_and_cut() -> None:
    """Unknown values are last in both directions; a page beyond the last is the last."""
    rows = [(f"topic{number:03}", number % 7 or None) for number in range(250)]
    sorts = {"name": lambda row: row[0], "size": lambda row: row[1]}
    page = arrange(rows, Fields("page=9"), sorts, lambda row: row[0])
    assert (page["table"].page, page["table"].pages) == (3, 3)
    assert len(page["table"].rows) == 250 - 2 * ROWS_PER_PAGE
    actual = arrange(rows, Fields("q=TOPIC00&sort=size&order=desc"), sorts, lambda row: row[0])
    assert [row[1] for row in actual["table"].rows] == [6, 5, 4, 3, 2, 2, 1, 1, None, None]


@pytest.mark.parametrize("text", ["²", "१", "1_0", "", " 1", "+", "1.0", "9" * 30, str(2**63)])
def test_numbers_are_digits_that_the_protocol_can_hold(text: str) -> None:
    """Python reads more numbers than users mean, and larger ones than a request can hold."""
    assert whole_number(text) is None
    assert natural_number(text) is None


def test_numbers_of_the_protocol_are_read() -> None:
    """Offsets have 64 bits, partitions 32; only some fields may be negative."""
    assert whole_number("-5") == -5
    assert natural_number("-5") is None
    assert natural_number(str(2**63 - 1)) == 2**63 - 1
    assert natural_number(str(2**31), INT_MAX) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (5e9, "4.66 GiB")],
)
def test_sizes_have_binary_units(value: float | None, text: str) -> None:
    """Sizes have three digits and a unit."""
    assert formats.size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (2, "2 s"), (59.94, "59.9 s"), (61, "1 min 1 s"), (7200, "2 h"), (90_000, "1 d 1 h")],
)  # fmt: skip
def test_durations_have_two_units(seconds: float, text: str) -> None:
    """Durations are shown with their two largest units."""
    assert formats.duration(seconds) == text


def test_moments_outside_of_the_calendar_are_shown_as_numbers() -> None:
    """A record may have any timestamp of 64 bits."""
    assert formats.moment(0) == "1970-01-01 00:00:00.000Z"
    assert formats.moment(2**62) == str(2**62)
    assert formats.moment(-1) == "–"


def test_json_is_indented_and_everything_else_is_left_alone() -> None:
    """A value that claims to be JSON but is not is shown as it is."""
    assert formats.pretty(Decoded(Format.JSON, '{"a":1}', 7)) == '{\n  "a": 1\n}'
    assert formats.pretty(Decoded(Format.JSON, "{", 1)) == "{"
    assert formats.pretty(Decoded(Format.TEXT, "a", 1)) == "a"


def test_csv_never_starts_a_formula() -> None:
    """A spreadsheet shows the text of a record, and does not run it."""
    assert csv_line(["=1+1", "@x", "plain", 3, None]) == b"'=1+1,'@x,plain,3,\n"


def test_options_times_and_targets_of_forms_name_the_malformed_line() -> None:
    """Text areas are parsed line by line."""
    assert parse_options("a=1\n\n b = c=d ") == {"a": "1", "b": "c=d"}
    with pytest.raises(ConfigError, match="'nonsense'"):
        parse_options("nonsense")
    assert parse_time("2026-01-31T12:00") == parse_time("2026-01-31T13:00+01:00")
    with pytest.raises(ConfigError, match="'soon'"):
        parse_time("soon")
    assert _targets("a-b-0=1, 2") == {("a-b", 0): (1, 2)}
    with pytest.raises(ConfigError, match="'a-0'"):
        _targets("a-0")
