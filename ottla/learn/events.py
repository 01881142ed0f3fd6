"""The values of a lesson: texts in two languages, steps, and pictures of the cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

LANGUAGES = ("en", "zh")
Facts = Mapping[str, Any]


class Text(NamedTuple):
    """One text in English and Chinese; facts of the running cluster replace `{names}` in braces."""

    en: str
    zh: str

    def render(self, language: str, facts: Facts | None = None) -> str:
        """Return the text in a language, "en" or "zh", with these facts."""
        text = self.zh if language == "zh" else self.en
        values = {name: shown(value, language) for name, value in (facts or {}).items()}
        return text.format(**values)


@dataclass(frozen=True, slots=True)
class Step:
    """An action that follows, or an observation; `facts` are those observed so far."""

    text: Text
    facts: Facts


class Slot(NamedTuple):
    """One record in a log."""

    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """The log of one replica, as it is on the disk of its broker.

    `state` is "leader", "in sync", "out of sync" or "down".
    """

    broker: int
    state: str
    log_end_offset: int
    records: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition on all of its brokers; leader -1 and high watermark -1 without a leader."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    high_watermark: int
    replicas: tuple[ReplicaView, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group: the partitions of each member, and the committed offset of partitions."""

    group: str
    members: Mapping[str, tuple[str, ...]]
    committed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table of facts, with a title and columns; cells may be texts."""

    title: Text
    columns: tuple[Text, ...]
    rows: tuple[tuple[Any, ...], ...]


NONE = Text("none", "无")
# Between values, between pairs, within a pair, and the word for no values.
_MARKS = {
    "": (", ", "; ", ": ", "-"),
    "en": (", ", "; ", ": ", NONE.en),
    "zh": ("、", "；", "：", NONE.zh),
}
Event = Step | PartitionView | GroupView | TableView
Emit = Callable[[Event], None]


def shown(value: Any, language: str = "") -> str:
    """Return a fact as it appears in a sentence of a language, or in a picture without a language."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Text):
        return value.render(language)
    comma, semicolon, colon, empty = _MARKS[language]
    if isinstance(value, Mapping):
        rows = [f"{shown(key, language)}{colon}{shown(value[key], language)}" for key in value]
        return semicolon.join(rows) or empty
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return comma.join(shown(item, language) for item in items) or empty
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)
