"""Transcripts: files of conversations that are script and record in one.

    option group.max.size=2             a setting of the broker, before the first conversation
    only 4.3.0                          also there: the older Apache Kafka has no responses to this
    == An unknown member                a conversation: with new connections and symbols
    + topic t 2 cleanup.policy=compact  preparation: executed, not compared
    > Heartbeat 0-4 {group_id: "g"}     a request, sent in each of these versions, one after another
    < 0-4 {error_code: …}               the response of Apache Kafka (the newest)
    <3.9.2 0-3 {error_code: …}          the response of the older one, if it differs
    ! the reason for a difference
    = 0-4 {error_code: …}               the response of Ottla, if it differs on purpose
    a> JoinGroup 5 {…}                  the same over a connection called a
    b~ JoinGroup 5 {…}                  sent without waiting for the response
    b?                                  the response to that

Besides a value, a response may be `closed` (the connection) or `nothing` (and the connection stays
open). A line that starts with blanks continues the previous one. The recorder writes lines with
`<`, and those with `=` after a line with `!`; all others are written by hand.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.wire.api_keys import APIS, Api
from tests.compat.recorded import notation

MODERN = "4.3.0"
OLDER = "3.9.2"

# The responses, as text, by the version of the request.
Answers = dict[int, str]

_API = {api.name: api for api in APIS.values()}
_REQUEST = re.compile(r"([a-z]\w*)?([>~]) ?(\w+) (\S+)(?: (.*))?", re.DOTALL)
_TAKE = re.compile(r"([a-z]\w*)\?")
_ANSWER = re.compile(r"(<|=)([\d.]*) (?:([\d,-]+) )?(.+)")
RAW = "raw"


@dataclass
class Exchange:
    """A request line and its responses. `api` is None for raw bytes."""

    line: int
    source: str
    connection: str
    api: Api | None
    versions: list[int]
    written: Any
    is_waited_for: bool = True
    modern: Answers = field(default_factory=dict)
    older: Answers = field(default_factory=dict)
    reason: str | None = None
    ours: Answers = field(default_factory=dict)

    def expected(self, version: int) -> str:
        """Return the response that Ottla must send."""
        return self.ours.get(version) or self.modern[version]


@dataclass
class Take:
    """The line at which the response to an earlier request is read."""

    line: int
    source: str
    connection: str
    exchange: Exchange


@dataclass
class Preparation:
    """A precondition that must hold before the conversation continues."""

    line: int
    source: str
    words: list[str]


@dataclass
class Remark:
    """A comment or an empty line."""

    source: str


Step = Exchange | Take | Preparation | Remark


@dataclass
class Conversation:
    """Steps that share connections and symbols."""

    source: str
    steps: list[Step]


@dataclass
class Transcript:
    """A whole file."""

    path: Path
    head: list[str]
    options: dict[str, str]
    conversations: list[Conversation]

    @property
    def is_for_older(self) -> bool:
        """Return True if the older Apache Kafka is recorded, too."""
        return f"only {MODERN}" not in self.head

    def exchanges(self) -> list[Exchange]:
        """Return all requests in their order."""
        return [
            step
            for conversation in self.conversations
            for step in conversation.steps
            if isinstance(step, Exchange)
        ]


class TranscriptError(ValueError):
    """A line is not understood."""


def read(path: Path) -> Transcript:
    """Read a file. Raises TranscriptError, which names the wrong line."""
    transcript = Transcript(path, [], {}, [])
    current: Exchange | None = None
    for number, text in _logical_lines(path.read_text(encoding="utf-8")):
        try:
            current = _add(transcript, number, text, current)
        except (ValueError, KeyError) as error:
            raise TranscriptError(f"{path.name}:{number}: {error}") from error
    return transcript


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(" ") and line.strip():
            first, before = lines[-1]
            lines[-1] = (first, f"{before}\n{line}")
        else:
            lines.append((number, line.rstrip()))
    return lines


def _add(
    transcript: Transcript, number: int, text: str, current: Exchange | None
) -> Exchange | None:
    """Add one line; return the exchange to which the next responses belong."""
    if text.startswith("== "):
        transcript.conversations.append(Conversation(text, []))
        return None
    if not transcript.conversations:
        if text.startswith("option "):
            name, _, value = text.removeprefix("option ").partition("=")
            transcript.options[name] = value
        transcript.head.append(text)
        return None
    steps = transcript.conversations[-1].steps
    if not text or text.startswith("#"):
        steps.append(Remark(text))
        return current
    if text.startswith("+ "):
        steps.append(Preparation(number, text, text.split()[1:]))
        return None
    if text.startswith(("<", "=", "! ")):
        if current is None:
            raise TranscriptError("there is no request before this answer")
        _add_answer(current, text)
        return current
    if match := _TAKE.fullmatch(text):
        exchange = _unanswered(steps, match[1])
        steps.append(Take(number, text, match[1], exchange))
        return exchange
    exchange = _exchange(number, text)
    steps.append(exchange)
    return exchange


def _unanswered(steps: list[Step], connection: str) -> Exchange:
    for step in reversed(steps):
        if isinstance(step, Exchange) and step.connection == connection:
            return step
    raise TranscriptError(f"nothing was sent over {connection}")


def _exchange(number: int, text: str) -> Exchange:
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise TranscriptError("this is no request, answer or preparation")
    connection, mark, name, versions, written = match.groups()
    if name == RAW:
        return Exchange(number, text, connection or "", None, [0], bytes.fromhex(versions))
    api = _API[name]
    value = notation.parse(written or "{}")
    assert isinstance(value, dict), "a request has fields"
    return Exchange(
        line=number,
        source=text,
        connection=connection or "",
        api=api,
        versions=_parse_versions(versions),
        written=value,
        is_waited_for=mark == ">",
    )


def _add_answer(exchange: Exchange, text: str) -> None:
    if text.startswith("! "):
        exchange.reason = text
        return
    match = _ANSWER.fullmatch(text)
    if match is None:
        raise TranscriptError("this is no answer")
    mark, origin, versions, response = match.groups()
    target = exchange.ours if mark == "=" else exchange.older if origin else exchange.modern
    for version in _parse_versions(versions) if versions else exchange.versions:
        target[version] = response


def _parse_versions(text: str) -> list[int]:
    versions: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        versions += range(int(first), int(last or first) + 1)
    return versions


def write(transcript: Transcript) -> None:
    """Write the file again, with the responses of the exchanges."""
    lines = list(transcript.head)
    for conversation in transcript.conversations:
        lines.append(conversation.source)
        for step in conversation.steps:
            lines.append(step.source)
            if isinstance(step, Take):
                lines += _answer_lines(step.exchange)
            elif isinstance(step, Exchange) and step.is_waited_for:
                lines += _answer_lines(step)
    transcript.path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _answer_lines(exchange: Exchange) -> list[str]:
    lines = _grouped("<", exchange, exchange.modern)
    lines += _grouped(f"<{OLDER}", exchange, exchange.older)
    if exchange.reason is not None:
        lines.append(exchange.reason)
        lines += _grouped("=", exchange, exchange.ours)
    return lines


def _grouped(mark: str, exchange: Exchange, responses: Answers) -> list[str]:
    """Write one line for all versions that have the same response."""
    by_answer: dict[str, list[int]] = {}
    for version in exchange.versions:
        if version in responses:
            by_answer.setdefault(responses[version], []).append(version)
    if list(by_answer.values()) == [exchange.versions]:
        return [f"{mark} {response}" for response in by_answer]
    return [f"{mark} {version_text(versions)} {text}" for text, versions in by_answer.items()]


def version_text(versions: Iterable[int]) -> str:
    """Write versions as in a line: `0-3,5`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
