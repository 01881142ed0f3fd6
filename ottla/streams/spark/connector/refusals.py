"""Passes records that brokers reject to the application's production exception handler, in the task
that writes.

The records come from many tasks, as bytes; their source records are not known here.
"""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from ottla.base.errors import ApiError
from ottla.client.sender import TOPIC_REFUSALS
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.settings.handlers import ErrorHandlerContext, ExceptionHandlers, Result
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_encoding import Rows


class Refusals:
    """Calls the handler for rejected records, and collects the dead letters that it returns."""

    def __init__(self, handlers: ExceptionHandlers) -> None:
        self._handlers = handlers
        self._letters: list[ProducedRecord] = []
        self._topics: dict[str, ApiError] = {}
        self._letter_topics: frozenset[str] = frozenset()
        self.skipped: Counter[str] = Counter()
        """The number of rejected records that the handler skipped, by topic."""

    def ask(self, topic: str, rows: Rows, error: ApiError) -> None:
        """Return if the handler continues without the rows; raise the error if it does not."""
        if topic in self._letter_topics:
            raise error
        if error.code in TOPIC_REFUSALS:
            self._topics[topic] = error
        for record in _records(topic, rows):
            context = ErrorHandlerContext(
                None,
                -1,
                -1,
                record.headers,
                f"the sink of {topic}",
                record.timestamp,
                record.key,
                record.value,
                self._handlers.dead_letter_queue_topic_name,
            )
            response = self._handlers.production.handle_error(context, record, error)
            if response.result is Result.FAIL:
                raise error
            self.skipped[topic] += 1
            self._letters += response.dead_letter_queue_records

    def of_topic(self, topic: str) -> ApiError | None:
        """Return the error of a topic that cannot be written to; None if none is known."""
        return self._topics.get(topic)

    def take_letters(self) -> pa.Table | None:
        """Return the dead letters in the form that is written; None if the list is empty.

        If a dead letter is rejected, its error is raised without asking the handler.
        """
        letters, self._letters = self._letters, []
        if not letters:
            return None
        self._letter_topics = frozenset(letter.topic for letter in letters)
        headers = [
            [{"key": key, "value": value} for key, value in letter.headers] for letter in letters
        ]
        times = pa.array([letter.timestamp * 1000 for letter in letters], pa.timestamp("us", "UTC"))
        return pa.table(
            {
                "topic": pa.array([letter.topic for letter in letters], pa.string()),
                "partition": pa.array([letter.partition for letter in letters], pa.int32()),
                "timestamp": times,
                "key": pa.array([letter.key for letter in letters], pa.binary()),
                "value": pa.array([letter.value for letter in letters], pa.binary()),
                "headers": pa.array(headers, HEADERS_TYPE),
            }
        )


def _records(topic: str, rows: Rows) -> Iterator[ProducedRecord]:
    count = len(rows.values)
    keys = [None] * count if rows.keys is None else rows.keys.to_pylist()
    headers = [None] * count if rows.headers is None else rows.headers.to_pylist()
    columns = keys, rows.values.to_pylist(), rows.timestamps.tolist(), headers
    for key, value, timestamp, entries in zip(*columns, strict=True):
        pairs = tuple((entry["key"], entry["value"]) for entry in entries or ())
        yield ProducedRecord(topic, key, value, timestamp, pairs)
