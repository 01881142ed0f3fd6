"""Searches in the brokers: the rows that their HTTP ports return (`/search`, docs/http.md)."""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ottla.base.search.conditions import Condition
from ottla.base.search.language import filter_text
from ottla.operations.survey.http import HttpError, get_lines
from ottla.wire.records.records import Record

Row = Mapping[str, Any]


class Match(NamedTuple):
    """A record that the broker found."""

    record: Record
    is_log_append_time: bool


def search_query(
    partition: tuple[str, int],
    span: tuple[int | str, int | str],
    conditions: Sequence[Condition],
    *,
    limit: int = 0,
    read_committed: bool = True,
) -> list[tuple[str, object]]:
    """Return the parameters of a search in one partition, between two positions."""
    parameters: list[tuple[str, object]] = [
        ("topic", partition[0]),
        ("partition", partition[1]),
        ("from", span[0]),
        ("to", span[1]),
        ("limit", limit),
    ]
    if conditions:
        parameters.append(("where", filter_text(conditions)))
    isolation = "read_committed" if read_committed else "read_uncommitted"
    parameters.append(("isolation", isolation))
    return parameters


def search_rows(
    url: str, parameters: Iterable[tuple[str, object]], timeout_s: float
) -> Iterator[Row]:
    """Yield the rows of a search; the connection is closed at the end, or if the caller stops.

    HttpError if the broker refuses the search, or closes the connection before the end.
    """
    last = ""
    for line in get_lines(url, f"/search?{urlencode(list(parameters))}", timeout_s):
        try:
            row = json.loads(line)
            last = row["type"]
        except (ValueError, KeyError, TypeError) as error:
            raise HttpError(f"{url} sent a line that is no row of a search: {error!r}") from error
        yield row
    if last != "end":
        raise HttpError(f"{url} closed the connection during the search")


def match_of(url: str, row: Row) -> Match:
    """Return the record of a row; HttpError if it cannot be used."""
    try:
        texts = row.get("headers") or []
        values = row.get("headers_base64") or texts[1::2]
        read = _base64_bytes if "headers_base64" in row else _text_bytes
        headers = [(str(name), read(value)) for name, value in zip(texts[::2], values, strict=True)]
        record = Record(
            _bytes(row, "key"),
            _bytes(row, "payload"),
            headers,
            int(row.get("ts", -1)),
            int(row["offset"]),
        )
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise HttpError(f"{url} sent a match that cannot be used: {error!r}") from error
    return Match(record, row.get("tstype") == "logappend")


def _bytes(row: Row, name: str) -> bytes | None:
    coded = row.get(f"{name}_base64")
    return _text_bytes(row.get(name)) if coded is None else _base64_bytes(coded)


def _text_bytes(text: str | None) -> bytes | None:
    return None if text is None else str(text).encode()


def _base64_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
