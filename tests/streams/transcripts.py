"""Reads the transcripts of tests/streams/recorded: what Apache Kafka Streams wrote, event by event."""

import os
from pathlib import Path

from ottla.streams.task.task import ProducedRecord
from tests.streams.recorded.topologies import SCENARIOS

_RECORDED = Path(__file__).parent / "recorded" / "transcripts"
TRANSCRIPTS = Path(os.environ.get("OTTLA_TRANSCRIPTS", _RECORDED))
FOUND = Path(__file__).parent / "recorded" / "found"
FOUND_NAMES = sorted(each.stem for each in FOUND.glob("*.txt"))
NAMES = sorted([*SCENARIOS, "processor_api"])
# Changelogs that are Kafka's own business, of stores that nobody asks.
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
    """Return the same of an input that once differed, behind the scenario's line."""
    first, _, text = (FOUND / f"{name}.txt").read_text().partition("\n")
    return first.removeprefix("scenario "), *_read(text)


def _read(text: str) -> tuple[str, list[tuple[str, list[str]]]]:
    described, _, events = text.partition("events\n")
    steps: list[tuple[str, list[str]]] = []
    for each in events.splitlines():
        if each.startswith("< "):
            steps[-1][1].append(each)
        else:
            steps.append((each, []))
    return described, steps


def _text(data: bytes | None) -> str:
    if data is None:
        return "-"
    if all(32 < each <= 126 for each in data):
        return f"'{data.decode()}'"
    return "0x" + data.hex()


def line(record: ProducedRecord) -> str:
    """Return a record as a transcript shows it."""
    text = f"< {record.topic} {_text(record.key)} {record.timestamp} {_text(record.value)}"
    return text + _headers(record) + _errors(record)


def _headers(record: ProducedRecord) -> str:
    shown = [
        f"{name}={'-' if data is None else data.decode()}"
        for name, data in record.headers
        if not name.startswith("__streams.errors.")
    ]
    return f" {{{','.join(shown)}}}" if shown else ""


def _errors(record: ProducedRecord) -> str:
    """Return the headers about an error: those that depend on the language without their values."""
    found = ""
    for header, data in record.headers:
        name = header.removeprefix("__streams.errors.")
        if name != header:
            shown = "null" if data is None else data.decode()
            found += f" {name}" + (f"={shown}" if name in ("topic", "partition", "offset") else "")
    return found


def is_compared(topic: str) -> bool:
    """Return whether what is written to a topic stands in the transcripts."""
    is_changelog = topic.endswith("-changelog")
    return topic.startswith("out") or (is_changelog and not any(each in topic for each in _HIDDEN))
