"""Read the transcripts of tests/streams/recorded: the records of Kafka Streams, by event."""

import os
from pathlib import Path

from ottla.streams.task.task import ProducedRecord
from tests.streams.recorded.topologies import SCENARIOS

_RECORDED = Path(__file__).parent / "recorded" / "transcripts"
TRANSCRIPTS = Path(os.environ.get("OTTLA_TRANSCRIPTS", _RECORDED))
FOUND = Path(__file__).parent / "recorded" / "found"
FOUND_NAMES = sorted(path.stem for path in FOUND.glob("*.txt"))
NAMES = sorted([*SCENARIOS, "processor_api"])
# Changelogs of Kafka's internal stores, which nothing reads.
_HIDDEN = (
    "SUBSCRIPTION",
    "SUPPRESS",
    "OUTERSHARED",
    "shared-join",
    "subscription",
    "last-store",
    "Buffer",
)


def transcript(name: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the description, and each event with the lines that it wrote."""
    return _read((TRANSCRIPTS / f"{name}.txt").read_text())


def found_transcript(name: str) -> tuple[str, str, list[tuple[str, list[str]]]]:
    """Return scenario line, description and steps of an input that once differed."""
    first, _, text = (FOUND / f"{name}.txt").read_text().partition("\n")
    return first.removeprefix("scenario "), *_read(text)


def _read(text: str) -> tuple[str, list[tuple[str, list[str]]]]:
    described, _, events = text.partition("events\n")
    steps: list[tuple[str, list[str]]] = []
    for line in events.splitlines():
        if line.startswith("< "):
            steps[-1][1].append(line)
        else:
            steps.append((line, []))
    return described, steps


def _text(data: bytes | None) -> str:
    if data is None:
        return "-"
    if all(32 < line <= 126 for line in data):
        return f"'{data.decode()}'"
    return "0x" + data.hex()


def line(record: ProducedRecord) -> str:
    """Format a record for a transcript."""
    text = f"< {record.topic} {_text(record.key)} {record.timestamp} {_text(record.value)}"
    return text + _headers(record) + _errors(record)


def _headers(record: ProducedRecord) -> str:
    output = [
        f"{name}={'-' if data is None else data.decode()}"
        for name, data in record.headers
        if not name.startswith("__streams.errors.")
    ]
    return f" {{{','.join(output)}}}" if output else ""


def _errors(record: ProducedRecord) -> str:
    """Return the error headers; values that depend on the language are omitted."""
    text = ""
    for header, data in record.headers:
        name = header.removeprefix("__streams.errors.")
        if name != header:
            output = "null" if data is None else data.decode()
            text += f" {name}" + (f"={output}" if name in ("topic", "partition", "offset") else "")
    return text


def is_compared(topic: str) -> bool:
    """Return whether the transcripts contain the records of a topic."""
    is_changelog = topic.endswith("-changelog")
    return topic.startswith("out") or (
        is_changelog and not any(pattern in topic for pattern in _HIDDEN)
    )
