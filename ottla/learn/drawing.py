"""Events of a lesson on a terminal: logs of replicas, in-sync replicas, high watermarks, groups."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text as Styled

from ottla.learn.events import (
    NONE,
    Event,
    GroupView,
    PartitionView,
    ReplicaView,
    Step,
    TableView,
    Text,
    shown,
)
from ottla.learn.lesson import Lesson

# Logs are drawn from their end, at most so many records.
_SLOTS = 6
# The padding of the labels, and the bar behind the last record.
_LABELS_FRAME = 8
# The borders of a panel, and the padding.
_PANEL_FRAME = 4
# Between the columns of the list, and the last column of the terminal.
_LIST_GAP = 3
# The bar before a record, and the padding.
_FRAME_WIDTH = 4
_VALUE_LENGTH = 12
# Behind the name of a lesson that is done.
_DONE = " ✓"
# Below this width there is no room for an indentation.
_NARROW = 56
_STATE_STYLES = {"leader": "bold cyan", "in sync": "green", "out of sync": "yellow", "down": "red"}
_STATES_ZH = {"leader": "leader", "in sync": "同步", "out of sync": "落后", "down": "宕机"}
_QUESTION = Text("Question", "问题")
_ANSWER = Text("Explanation", "解释")
_NO_MEMBERS = Text("no members", "没有成员")
_COMMITTED = Text("committed", "已提交")
# No line starts with one of the first, or ends with one of the second.
_CLOSING = "，。；：！？、）”》…"
_OPENING = "（“《"
_CHINESE = "\u2e80-\u2fff\u3021-\u9fff\uf900-\ufaff"
_WORD = f"[{_CHINESE}]|[^{_CHINESE}{_OPENING}{_CLOSING}\\s]+"
# Indivisible: a word or one character with its marks, and the spaces behind it.
_UNIT = re.compile(f"[{_OPENING}]*(?:{_WORD})?[{_CLOSING}]*\\s*")


class Drawing:
    """Draws the events of lessons on a stream, in one language."""

    def __init__(self, stream: TextIO, language: str) -> None:
        self._language = language
        self._console = Console(file=stream, highlight=False, soft_wrap=False)

    def lessons(
        self, headings: tuple[str, str], lessons: Iterable[Lesson], done: Collection[str] = ()
    ) -> None:
        """Draw the list of lessons, whose questions are wrapped in their column; those that are
        done have a mark.
        """
        rows = list(lessons)
        names = max(cell_len(name) for name in (headings[0], *(row.name for row in rows)))
        names += cell_len(_DONE) if done else 0
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for heading in headings:
            table.add_column(heading.upper(), no_wrap=True)
        for row in rows:
            lines = _wrap(self._word(row.question), self._console.width - names - _LIST_GAP)
            table.add_row(f"{row.name}{_DONE if row.name in done else ''}", "\n".join(lines))
        self._console.print(table)

    def question(self, lesson: Lesson) -> None:
        """Draw the question of a lesson."""
        title = f"{self._word(_QUESTION)} · {lesson.name}"
        self._panel(title, self._word(lesson.question))

    def explanation(self, text: str) -> None:
        """Draw the explanation."""
        self._panel(self._word(_ANSWER), text, border_style="green")

    def _panel(self, title: str, text: str, border_style: str = "none") -> None:
        lines = _wrap(text, self._console.width - _PANEL_FRAME)
        content = Styled("\n".join(lines))
        self._console.print(
            Panel(content, title=title, title_align="left", border_style=border_style)
        )

    def event(self, event: Event) -> None:
        """Draw one event."""
        if isinstance(event, Step):
            self._lines(Styled("➤ "), event.text.render(self._language, event.facts), "bold")
        elif isinstance(event, PartitionView):
            self._partition(event)
        elif isinstance(event, GroupView):
            self._group(event)
        else:
            self._table(event)
        self._console.print()

    def _partition(self, view: PartitionView) -> None:
        leader = self._word(NONE) if view.leader < 0 else f"{view.leader}"
        mark = "?" if view.high_watermark < 0 else f"{view.high_watermark}"
        self._console.print(
            Styled.assemble(
                (f"  {view.topic}-{view.partition}", "bold magenta"),
                f"   leader {leader} (epoch {view.leader_epoch})   ISR {shown(view.isr)}   ",
                (f"HW {mark}", "bold"),
            )
        )
        labels = max(sum(map(cell_len, self._labels(row))) for row in view.replicas)
        offsets = _fitting(view, self._console.width - labels - _LABELS_FRAME)
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        # On a narrow terminal the records are cut, not the end of the log.
        for number in range(3):
            width = max(cell_len(self._labels(row)[number]) for row in view.replicas)
            table.add_column(no_wrap=True, min_width=width)
        for _ in range(1 + len(offsets)):
            table.add_column(no_wrap=True)
        for replica in view.replicas:
            table.add_row(*self._replica(replica, offsets, view.high_watermark))
        self._console.print(table)

    def _labels(self, replica: ReplicaView) -> tuple[str, str, str]:
        state = _STATES_ZH[replica.state] if self._language == "zh" else replica.state
        indent = " " * min(4, max(1, self._console.width - _NARROW))
        return f"{indent}broker {replica.broker}", state, f"LEO {replica.log_end_offset}"

    def _replica(
        self, replica: ReplicaView, offsets: Sequence[int], high_watermark: int
    ) -> list[Styled]:
        broker, state, end = self._labels(replica)
        cells = [Styled(broker), Styled(state, _STATE_STYLES[replica.state]), Styled(end)]
        values = {slot.offset: slot.value for slot in replica.records}
        for offset in offsets:
            # The bold bar is the high watermark: consumers see what is to the left of it.
            bar = "┃" if offset == high_watermark else "│"
            text = _slot(offset, values[offset]) if offset in values else ""
            is_visible = 0 <= offset < high_watermark
            colour = "red" if replica.state == "down" else "green" if is_visible else "yellow"
            cells.append(Styled.assemble((f"{bar} ", "bold"), (text, colour)))
        is_all_visible = bool(values) and high_watermark > max(offsets)
        return [*cells, Styled("┃" if is_all_visible else "", "bold")]

    def _group(self, view: GroupView) -> None:
        name = (f"  {view.group}", "bold magenta")
        label = Styled.assemble(name, f"   {self._word(_COMMITTED)}: ")
        self._lines(label, shown(view.committed))
        for member, partitions in view.members.items():
            owned = ", ".join(partitions) or self._word(NONE)
            self._lines(Styled.assemble("    ", (member, "cyan"), " → "), owned)
        if not view.members:
            self._console.print(f"    {self._word(_NO_MEMBERS)}")

    def _table(self, view: TableView) -> None:
        self._lines(Styled(), self._word(view.title), "italic")
        table = Table(box=SIMPLE_HEAD)
        for column in view.columns:
            table.add_column(self._word(column))
        for row in view.rows:
            table.add_row(*(Styled(shown(cell, self._language)) for cell in row))
        self._console.print(table)

    def _lines(self, label: Styled, text: str, style: str = "") -> None:
        """Draw a label and a text; the lines of the text are below each other."""
        width = self._console.width - label.cell_len
        first, *rest = _wrap(text, width)
        self._console.print(Styled.assemble(label, (first, style)))
        for line in rest:
            self._console.print(Styled(f"{' ' * label.cell_len}{line}", style))

    def _word(self, text: Text) -> str:
        return text.render(self._language)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, at most `width` cells each.

    rich breaks lines only at spaces; Chinese sentences have few of them.
    """
    lines: list[str] = []
    line = ""
    for unit in _UNIT.findall(text):
        if line and cell_len(f"{line}{unit.rstrip()}") > width:
            lines.append(line.rstrip())
            line = ""
        line += unit
        if cell_len(line.rstrip()) > width:
            *full, line = chop_cells(line, width)
            lines += full
    return [*lines, line.rstrip()]


def _fitting(view: PartitionView, width: int) -> Sequence[int]:
    """Return the last offsets whose records fit beside each other; at least one."""
    widths: dict[int, int] = {}
    for replica in view.replicas:
        for offset, value in replica.records:
            cells = cell_len(_slot(offset, value)) + _FRAME_WIDTH
            widths[offset] = max(cells, widths.get(offset, 0))
    offsets = sorted(widths)[-_SLOTS:]
    while len(offsets) > 1 and sum(widths[offset] for offset in offsets) > width:
        offsets = offsets[1:]
    return offsets


def _slot(offset: int, value: str) -> str:
    return f"{offset}:{_cut(value)}"


def _cut(value: str) -> str:
    return value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…"
