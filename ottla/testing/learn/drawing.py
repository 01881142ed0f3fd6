"""Events of a lesson on a terminal: logs of replicas, in-sync replicas, high watermarks, groups."""

from collections.abc import Sequence
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text as Styled

from ottla.testing.learn.events import (
    Event,
    GroupView,
    PartitionView,
    ReplicaView,
    Step,
    TableView,
    Text,
    shown,
)
from ottla.testing.learn.lesson import Lesson

# Logs are drawn from their end, at most so many records.
_SLOTS = 6
# The padding of the labels, and the bar behind the last record.
_LABELS_FRAME = 8
# The bar before a record, and the padding.
_FRAME_WIDTH = 4
_VALUE_LENGTH = 12
_STATE_STYLES = {"leader": "bold cyan", "in sync": "green", "out of sync": "yellow", "down": "red"}
_STATES_ZH = {"leader": "leader", "in sync": "同步", "out of sync": "落后", "down": "宕机"}
_QUESTION = Text("Question", "问题")
_ANSWER = Text("Explanation", "解释")
_NONE = Text("none", "无")
_NO_MEMBERS = Text("no members", "没有成员")
_COMMITTED = Text("committed", "已提交")


class Drawing:
    """Draws the events of lessons on a stream, in one language."""

    def __init__(self, stream: TextIO, language: str) -> None:
        self._language = language
        self._console = Console(file=stream, highlight=False, soft_wrap=False)

    def question(self, lesson: Lesson) -> None:
        """Draw the question of a lesson."""
        title = f"{self._word(_QUESTION)} · {lesson.name}"
        self._console.print(Panel(lesson.question.render(self._language), title=title, title_align="left"))  # fmt: skip

    def explanation(self, text: str) -> None:
        """Draw the explanation."""
        title = self._word(_ANSWER)
        panel = Panel(text, title=title, title_align="left", border_style="green")
        self._console.print(panel)

    def event(self, event: Event) -> None:
        """Draw one event."""
        if isinstance(event, Step):
            self._console.print(
                Styled(f"➤ {event.text.render(self._language, event.facts)}", "bold")
            )
        elif isinstance(event, PartitionView):
            self._partition(event)
        elif isinstance(event, GroupView):
            self._group(event)
        else:
            self._table(event)
        self._console.print()

    def _partition(self, view: PartitionView) -> None:
        leader = self._word(_NONE) if view.leader < 0 else f"{view.leader}"
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
        for _ in range(4 + len(offsets)):
            table.add_column(no_wrap=True)
        for replica in view.replicas:
            table.add_row(*self._replica(replica, offsets, view.high_watermark))
        self._console.print(table)

    def _labels(self, replica: ReplicaView) -> tuple[str, str, str]:
        state = _STATES_ZH[replica.state] if self._language == "zh" else replica.state
        return f"    broker {replica.broker}", state, f"LEO {replica.log_end_offset}"

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
        committed = shown(view.committed)
        self._console.print(
            Styled.assemble(
                (f"  {view.group}", "bold magenta"),
                f"   {self._word(_COMMITTED)}: {committed}",
            )
        )
        for member, partitions in view.members.items():
            owned = ", ".join(partitions) or self._word(_NONE)
            self._console.print(Styled.assemble("    ", (member, "cyan"), f" → {owned}"))
        if not view.members:
            self._console.print(f"    {self._word(_NO_MEMBERS)}")

    def _table(self, view: TableView) -> None:
        table = Table(title=self._word(view.title), box=SIMPLE_HEAD, title_justify="left")
        for column in view.columns:
            table.add_column(column)
        for row in view.rows:
            table.add_row(*(Styled(shown(cell)) for cell in row))
        self._console.print(table)

    def _word(self, text: Text) -> str:
        return text.render(self._language)


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
