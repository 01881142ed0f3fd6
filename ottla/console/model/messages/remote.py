"""Search inside the brokers: the HTTP port of Ottla (`/search`) scans the log, and only matches
travel.

The conditions are translated to weaker ones of the broker; the console compares the matches again,
so that both searches have the same result.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.console.model.messages.filters import Condition, Field, JsonComparison, Operator
from ottla.console.model.messages.scanning import Span
from ottla.console.model.messages.values import BrowseRequest, Seek
from ottla.operations.search.remote import Match, Row, match_of, search_rows
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError

_TEXTS = (Operator.CONTAINS, Operator.EQUALS, Operator.STARTS_WITH)
_ORDERS = (
    JsonComparison.LESS,
    JsonComparison.LESS_OR_EQUAL,
    JsonComparison.GREATER,
    JsonComparison.GREATER_OR_EQUAL,
)


class Passed(NamedTuple):
    """The broker has searched up to `next_offset` and read so many bytes since it began."""

    next_offset: int
    scanned_bytes: int


@dataclass(frozen=True, slots=True)
class RemoteSearch:
    """A search that the leaders of a topic can run; `urls` are by partition."""

    topic: str
    urls: Mapping[int, str]
    parameters: tuple[tuple[str, str], ...]
    timeout_s: float

    def run(self, partition: int, span: Span) -> Iterator[Match | Passed]:
        """Yield matches and progress of one partition, at least once a second.

        Raises HttpError if the broker refuses (`search.enable=false`, too many searches) or stops.
        """
        query = [
            ("topic", self.topic),
            ("partition", str(partition)),
            ("from", str(span.start)),
            ("to", str(span.end)),
            ("limit", "0"),
            *self.parameters,
        ]
        url = self.urls[partition]
        for row in search_rows(url, query, self.timeout_s):
            match row["type"]:
                case "match":
                    yield _match(url, row)
                case "progress":
                    yield Passed(int(row["next_offset"]), int(row["bytes"]))
                case "end" if row.get("reason") == "complete":
                    yield Passed(span.end, int(row["bytes"]))
                    return
        raise HttpError(f"{url} ended the search of {self.topic}-{partition} too early")


def remote_search(
    connection: ClusterConnection, request: BrowseRequest, leaders: Mapping[int, int]
) -> RemoteSearch | None:
    """Return the search if the HTTP ports of all leaders are known and can narrow it down, or None."""
    urls = connection.settings.http_urls
    is_upwards = request.seek is not Seek.NEWEST
    if not is_upwards or request.masking or not request.conditions or not leaders:
        return None
    parameters = [pair for pair in map(_translate, request.conditions) if pair is not None]
    if not parameters or not all(node in urls for node in leaders.values()):
        return None
    if any(condition.ignores_case for condition in request.conditions):
        parameters.append(("ignore_case", "true"))
    if request.is_read_committed:
        parameters.append(("isolation", "read_committed"))
    by_partition = {number: urls[node] for number, node in leaders.items()}
    return RemoteSearch(request.topic, by_partition, tuple(parameters), connection.timeout_s)


def _translate(condition: Condition) -> tuple[str, str] | None:
    """Return a parameter that every match of a condition satisfies; None if there is none."""
    if condition.negated:
        return None
    operator, text = condition.operator, condition.text
    # The text of an integer is not in its serialized form.
    is_plain = operator in _TEXTS and text and not text.lstrip("-").isdecimal()
    if condition.field in (Field.KEY, Field.VALUE):
        if is_plain:
            return str(condition.field), text
        if operator is Operator.REGEX:
            return f"{condition.field}_regex", text
        if operator is Operator.JSON_PATH and condition.field is Field.VALUE:
            return "json", condition.path + _comparison(condition)
    if condition.field is Field.HEADER and condition.header and "=" not in condition.header:
        return "header", f"{condition.header}={text}" if is_plain else condition.header
    return None


def _comparison(condition: Condition) -> str:
    """Return the comparison in the broker's words, if it has the same meaning there; else nothing."""
    try:
        literal = json.loads(condition.text)
    except (ValueError, RecursionError):
        literal = condition.text
    operator = condition.comparison
    if (
        operator in _ORDERS
        and isinstance(literal, int | float | str)
        and not isinstance(literal, bool)
    ):
        return f" {operator} {json.dumps(literal)}"
    # Texts of numbers equal both the number and the text here, but not in the broker.
    if operator is JsonComparison.EQUALS and (
        literal is condition.text or isinstance(literal, bool)
    ):
        return f" == {json.dumps(literal)}"
    return ""


def _match(url: str, row: Row) -> Match:
    if any("\ufffd" in text for text in row.get("headers") or () if isinstance(text, str)):
        raise HttpError(f"{url} sent a header that is not text, so its bytes are unknown")
    return match_of(url, row)
