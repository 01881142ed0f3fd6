"""The file of --from-file: rows of CSV, as Jackson's reader and the tool's schemas understand them.

A row may lack its last columns, and a number may be empty: it is 0.
"""

import csv
from collections.abc import Iterator, Sequence

from ottla.base.errors import OttlaError
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.flags import integer, long

TopicPartition = tuple[str, int]
GroupOffset = tuple[str, TopicPartition, int]
_JACKSON = "com.fasterxml.jackson"
_DATABIND = f"{_JACKSON}.databind"
_RANGES = {
    "int": "int (-2147483648 - 2147483647)",
    "long": "long (-9223372036854775808 - 9223372036854775807)",
}


def rows_of(text: str, groups: Sequence[str]) -> Iterator[GroupOffset]:
    """Return the group, the partition and the offset of each row.

    If `groups` has one, the first row decides whether the rows name their group. OttlaError has the
    sentence of the Java tool.
    """
    lines = java_split("\n", text)
    has_group = len(groups) != 1 or not _is_without_group(lines)
    for line in lines:
        yield _row(line, None if has_group else groups[0])


def _is_without_group(lines: Sequence[str]) -> bool:
    """Return True if the first row is a topic, a partition and an offset."""
    try:
        _row(lines[0], "")
    except (IndexError, OttlaError):
        return False
    return True


def _row(line: str, group: str | None) -> GroupOffset:
    """Read a row, which names its group first if `group` is None."""
    if not line:
        raise OttlaError(
            f"{_DATABIND}.exc.MismatchedInputException: No content to map due to end-of-input"
        )
    try:
        cells = next(csv.reader([line], strict=True))
    except csv.Error:
        raise OttlaError(
            f"{_JACKSON}.core.JsonParseException: Missing closing quote for value"
        ) from None
    count = 4 if group is None else 3
    names = [*([] if group is None else [group]), *cells[:count], "", "", "", ""]
    row = (names[0], (names[1], _number(names[2], "int")), _number(names[3], "long"))
    # One comma behind the last column is allowed.
    extra = cells[count:]
    if extra and extra != [""]:
        raise OttlaError(
            f"{_JACKSON}.dataformat.csv.CsvReadException: Too many entries: expected at most {count} "
            f'(value #{count} ({len(extra[0])} chars) "{extra[0]}")'
        )
    return row


def _number(text: str, kind: str) -> int:
    text = text.strip()
    if text in ("", "null"):
        return 0
    try:
        return integer(text) if kind == "int" else long(text)
    except ValueError:
        pass
    if text.lstrip("-").isdecimal():
        # Jackson names the range only if the number is not even a long.
        limits = kind if _is_long(text) else _RANGES[kind]
        raise OttlaError(
            f"{_DATABIND}.JsonMappingException: Numeric value ({text}) out of range of {limits}"
        )
    raise OttlaError(
        f"{_DATABIND}.exc.InvalidFormatException: Cannot deserialize value of type `{kind}` from "
        f'String "{text}": not a valid `{kind}` value'
    )


def _is_long(text: str) -> bool:
    try:
        long(text)
    except ValueError:
        return False
    return True
