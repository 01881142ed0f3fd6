"""The writers and copies of the matrix: what each makes of the records of a topic.

Each writes to a topic of its own; the test reads it with a plain consumer.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ottla.console.fields import Fields
from ottla.console.model.messages.browsing import read_message
from ottla.console.model.producing import produce
from ottla.console.pages.topics.produce_form import AGAIN_MAX_BYTES, fields_of, read_form
from ottla.console.web.routes import MAX_BODY_BYTES
from tests.corpus.files import FILE_WRITES
from tests.corpus.judges import Reading
from tests.corpus.setting import PARTITIONS, Setting

Rows = Sequence[Reading]
Form = tuple[Any, ...]
_LARGE = {"max.message.bytes": "30000000"}


def whole(row: Reading) -> Form:
    """Return everything but the offset."""
    return row.partition, row.timestamp, row.key, row.value, row.headers


def content(row: Reading) -> Form:
    """Return key, value and headers."""
    return row.key, row.value, row.headers


def value_only(row: Reading) -> Form:
    """Return the value."""
    return (row.value,)


def copy(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Copy with `ottla topic copy`."""
    assert at.run("topic", "copy", topic, target).code == 0
    return rows


def copy_once(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Copy in transactions; timestamps of 0 are reported."""
    done = at.run("topic", "copy", topic, target, "--exactly-once")
    assert done.code == 0
    is_changed = any(row.timestamp <= 0 for row in rows)
    assert ("get the time of the copy" in done.errors) is is_changed
    return [row for row in rows if row.timestamp > 0]


def console_copy(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Copy with the REST API of the console."""
    body = json.dumps({"target": target, "with_records": True})
    response = at.call(f"/api/v1/clusters/local/topics/{topic}/copy", body)
    assert response.status == 200, response.text
    return rows


def rest_produce(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Produce every fifth record in hexadecimal; all of the topic of sizes that a request holds."""
    at.cluster.create_topic(target, config=_LARGE)
    some, written = rows if topic == "corpus-sizes" else rows[::5], []
    for row in some:
        request = {
            "topic": target,
            "key": "" if row.key is None else row.key.hex(),
            "key_format": "null" if row.key is None else "hex",
            "value": "" if row.value is None else row.value.hex(),
            "value_format": "null" if row.value is None else "hex",
            "headers": [
                {"name": name, "value": None if v is None else v.hex(), "value_format": "hex"}
                for name, v in row.headers
            ],
        }
        path = f"/api/v1/clusters/local/topics/{target}/messages"
        body = json.dumps({"request": request})
        response = at.call(path, body)
        if len(body) > MAX_BODY_BYTES:
            assert (response.status, "bytes at most" in response.text) == (413, True)
            continue
        assert response.status == 200, response.text
        written.append(row)
    return written


def send_again(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Fill the form with a record, and send what a browser sends of it."""
    at.cluster.create_topic(target, partitions=PARTITIONS.get(topic, 1))
    some = [row for row in rows[::3] if _size(row) <= AGAIN_MAX_BYTES]
    for row in some:
        found = read_message(at.connection, topic, row.partition, row.offset)
        fields = {**fields_of(found), "topic": target, "partition": "0"}
        # Browsers end the lines of text areas with both characters.
        for name in ("value", "headers"):
            fields[name] = fields[name].replace("\r\n", "\n").replace("\n", "\r\n")
        produce(at.connection, read_form(Fields(urlencode(fields)), target))
    return some


def _size(row: Reading) -> int:
    size = len(row.key or b"") + len(row.value or b"")
    return size + sum(len(name) + len(value or b"") for name, value in row.headers)


def produce_files(at: Setting, topic: str, target: str, rows: Rows, folder: Path) -> Rows:
    """Write each value from a file."""
    at.cluster.create_topic(target, config=_LARGE)
    some = [row for row in rows if row.value is not None][:60]
    names = []
    for number, row in enumerate(some):
        path = folder / str(number)
        path.write_bytes(row.value or b"")
        names.append(str(path))
    if names:
        assert at.run("produce", target, *names).code == 0
    return some


WRITES: Mapping[
    str, tuple[Callable[[Setting, str, str, Rows, Path], Rows], Callable[[Reading], Form]]
] = {
    "ottla topic copy": (copy, whole),
    "ottla topic copy --exactly-once": (copy_once, whole),
    "console copy": (console_copy, whole),
    "REST produce": (rest_produce, content),
    "console send again": (send_again, content),
    "ottla produce": (produce_files, value_only),
    **FILE_WRITES,
}
