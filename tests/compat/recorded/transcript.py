"""Transcripts: files of conversations that are script and record in one.

    option group.max.size=2             a setting of the broker, before the first conversation
    only 4.3.0                          there as well: the older Apache Kafka has no answers to this
    == A member that nobody knows       a conversation: connections and symbols start anew
    + topic t 2 cleanup.policy=compact  preparation: done, not compared
    > Heartbeat 0-4 {group_id: "g"}     a request, sent in each of these versions, one after another
    < 0-4 {error_code: …}               what Apache Kafka (the newest) answered
    <3.9.2 0-3 {error_code: …}          what that older one answered, where it differs
    ! why ours is another
    = 0-4 {error_code: …}               what Ottla answers, where that is meant to differ
    a> JoinGroup 5 {…}                  the same over a connection called a
    b~ JoinGroup 5 {…}                  sent; the answer is not waited for
    b?                                  the answer to that

Besides a value, an answer may be `closed` (the connection) or `nothing` (and the connection goes on).
A line that starts with blanks goes on with the one before. Lines with `<` are written by the
recorder, those with `=` too where a line with `!` asks for it; all others are written by hand.
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

# What was answered, as text, by the version of the request.
Answers = dict[int, str]

_API = {api.name: api for api in APIS.values()}
_REQUEST = re.compile(r"([a-z]\w*)?([>~]) ?(\w+) (\S+)(?: (.*))?", re.DOTALL)
_TAKE = re.compile(r"([a-z]\w*)\?")
_ANSWER = re.compile(r"(<|=)([\d.]*) (?:([\d,-]+) )?(.+)")
RAW = "raw"


@dataclass
class Exchange:
    """One line of request and what belongs to it. `api` is None for raw bytes."""

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
        """Return what Ottla has to answer."""
        return self.ours.get(version) or self.modern[version]


@dataclass
class Take:
    """The place where the answer to an earlier request is taken."""

    line: int
    source: str
    connection: str
    exchange: Exchange


@dataclass
class Preparation:
    """Something that has to be there before the conversation goes on."""

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
        """Tell whether the older Apache Kafka is asked too."""
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
    """A line says nothing that is understood."""


def read(path: Path) -> Transcript:
    """Read a file; TranscriptError names the line that is wrong."""
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
    """Add one line; return the exchange that answers after it belong to."""
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
    if taken := _TAKE.fullmatch(text):
        exchange = _unanswered(steps, taken[1])
        steps.append(Take(number, text, taken[1], exchange))
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
    mark, origin, versions, answer = match.groups()
    target = exchange.ours if mark == "=" else exchange.older if origin else exchange.modern
    for version in _parse_versions(versions) if versions else exchange.versions:
        target[version] = answer


def _parse_versions(text: str) -> list[int]:
    versions: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        versions += range(int(first), int(last or first) + 1)
    return versions


def write(transcript: Transcript) -> None:
    """Write the file anew, with the answers that the exchanges hold."""
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


def _grouped(mark: str, exchange: Exchange, answers: Answers) -> list[str]:
    """Write one line for all versions that are answered alike."""
    by_answer: dict[str, list[int]] = {}
    for version in exchange.versions:
        if version in answers:
            by_answer.setdefault(answers[version], []).append(version)
    if list(by_answer.values()) == [exchange.versions]:
        return [f"{mark} {answer}" for answer in by_answer]
    return [f"{mark} {version_text(versions)} {text}" for text, versions in by_answer.items()]


def version_text(versions: Iterable[int]) -> str:
    """Write versions as they stand in a line: `0-3,5`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
