"""Run the examples of the pages of streams: Python, followed by input and output records."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla import streams
from ottla.streams import StreamsBuilder, TopologyTestDriver
from ottla.streams.model.raw import ProducedRecord, TopicRecord

_DOCS = Path(__file__).resolve().parents[2] / "docs"
# In the order of their examples.
PAGES = [
    _DOCS / f"{name}.md"
    for name in ("streams", "streams-operators", "streams-aggregations", "streams-joins")
]
_BLOCK = re.compile(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.DOTALL)
_TIME = re.compile(r" @(\d+)$")
_INTERNAL = ("-changelog", "-repartition", "-topic")


@dataclass(frozen=True)
class Example:
    """An example: its code and its lines of records; without lines it checks itself."""

    code: str
    lines: tuple[str, ...]

    @property
    def inputs(self) -> list[str]:
        """The input records."""
        return [line for line in self.lines if line.startswith("> ")]


def examples() -> list[Example]:
    """Return the examples of the pages."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    matches = _BLOCK.findall(text)
    return [Example(code, tuple(text.splitlines())) for code, text in matches]


def play(example: Example) -> list[str]:
    """Run an example; return its input lines, each followed by its output."""
    names = {name: known for name, known in vars(streams).items() if name in streams.__all__}
    names["builder"] = builder = StreamsBuilder()
    exec(compile(example.code, "docs/streams.md", "exec"), names)
    if not example.lines:
        return []
    topology = names.get("topology") or builder.build()
    lines = []
    with TopologyTestDriver(topology, settings=names.get("settings")) as driver:
        for line in example.inputs:
            lines.append(line)
            _pipe(driver, line.removeprefix("> "))
            lines += _written(driver)
    return lines


def _pipe(driver: TopologyTestDriver, line: str) -> None:
    topic, rest = line.split(" ", 1)
    if topic == "clock":
        driver.advance_wall_clock_time(rest)
        return
    time = _TIME.search(rest)
    key, value = _TIME.sub("", rest).split(" ", 1)
    timestamp = int(time.group(1)) if time else 0
    driver.pipe(topic, TopicRecord(_bytes(key), _bytes(value), timestamp))


def _bytes(text: str) -> bytes | None:
    if text == "-":
        return None
    try:
        json.loads(text)
    except ValueError:
        text = json.dumps(text)
    return text.encode()


def _text(data: bytes | None) -> str:
    if data is None:
        return "-"
    try:
        value: Any = json.loads(data)
    except ValueError:
        value = int.from_bytes(data, "big", signed=True)
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _written(driver: TopologyTestDriver) -> Iterator[str]:
    for topic in sorted(driver.produced_topic_names):
        if topic.endswith(_INTERNAL):
            continue
        queue = driver.produced(topic)
        for _ in range(len(queue)):
            yield _line(queue.popleft())


def _line(record: ProducedRecord) -> str:
    time = f" @{record.timestamp}" if record.timestamp else ""
    return f"< {record.topic} {_text(record.key)} {_text(record.value)}{time}"
