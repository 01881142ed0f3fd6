"""Everything a person or a script reads from the command line: tables, JSON, sentences, progress.

Results go to standard output, everything else to standard error. Only this module may use rich, and
only once a progress bar is really shown: it costs as much time to import as the rest of a command.
"""

import importlib
import json
import select
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TextIO

import click

TABLE = "table"
JSON = "json"
# Work that ends sooner than this shows no bar.
_QUIET_S = 1.0
_ROWS_AT_ONCE = 1000
_GAP = "  "
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_ERASE = "\x1b[2K"


class Output:
    """The format a command was asked for; each command prints one result through it."""

    def __init__(self, output_format: str = TABLE) -> None:
        self.is_json = output_format == JSON

    def rows(
        self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str = ""
    ) -> None:
        """Print rows: as a table of `columns`, or as a JSON list of all that the rows hold.

        `empty` is what to say to people when there are no rows.
        """
        if self.is_json:
            click.echo(json.dumps(list(rows), indent=2, default=str))
        elif rows:
            click.echo(render_table(rows, columns))
        elif empty:
            note(empty)

    def stream(self, columns: Sequence[str]) -> "RowStream":
        """Return where rows of a long result go one by one; JSON is an object a line."""
        return RowStream(columns, is_json=self.is_json)

    def findings(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Print what an examination found: what is wrong stands out, with its remedy below.

        Each row has a state (ok, warn, fail), a check, what was found, and a remedy, maybe empty.
        """
        if self.is_json:
            click.echo(json.dumps(list(rows), indent=2))
            return
        width = max(len(row["check"]) for row in rows)
        for row in rows:
            word, remedy = row["state"], row["remedy"]
            mark = word.upper() if remedy else word
            if sys.stdout.isatty():
                mark = click.style(mark, fg=_COLOURS[word], bold=bool(remedy))
            gap = " " * (4 - len(word))
            click.echo(f"{mark}{gap}  {row['check'].ljust(width)}  {row['found']}")
            if remedy:
                click.echo(f"      {'':{width}}  -> {remedy}")

    def done(self, sentence: str, **facts: Any) -> None:
        """Report what was done: as a sentence, or as a JSON object of the facts."""
        click.echo(json.dumps(facts, default=str) if self.is_json else sentence)


class RowStream:
    """Rows printed as they come, a thousand at a time; a context manager that prints the rest."""

    def __init__(self, columns: Sequence[str], *, is_json: bool) -> None:
        self._columns = columns
        self._is_json = is_json
        self._waiting: list[Mapping[str, Any]] = []
        self._widths: list[int] = []

    def append(self, row: Mapping[str, Any]) -> None:
        """Print a row, soon."""
        self._waiting.append(row)
        if len(self._waiting) >= _ROWS_AT_ONCE:
            self._print()

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print rows, soon."""
        for row in rows:
            self.append(row)

    def __enter__(self) -> "RowStream":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Print what waits."""
        if kind is None and self._waiting:
            self._print()

    def _print(self) -> None:
        rows, self._waiting = self._waiting, []
        if self._is_json:
            click.echo("\n".join(json.dumps(row, default=str) for row in rows))
            return
        # One headline over all; later rows keep the columns of the first thousand where they fit.
        text = render_table(rows, self._columns, widths=self._widths)
        click.echo(text if not self._widths else text.partition("\n")[2])
        self._widths = self._widths or column_widths(rows, self._columns)


def note(text: str) -> None:
    """Tell something beside the result."""
    click.echo(text, err=True)


def is_terminal() -> bool:
    """Tell whether a person is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def render_table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, widths: Sequence[int] = ()
) -> str:
    """Return aligned columns under a headline; numbers stand to the right.

    `widths` are the least widths of the columns, if any are given.
    """
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    least = column_widths(rows, columns)
    if widths:
        least = [max(pair) for pair in zip(least, widths, strict=True)]
    rights = [
        all(isinstance(row.get(column), int | float | None) for row in rows) for column in columns
    ]
    headline = _line(_titles(columns), least, rights)
    if sys.stdout.isatty():
        headline = click.style(headline, bold=True)
    return "\n".join([headline, *(_line(line, least, rights) for line in cells)])


def column_widths(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[int]:
    """Return how wide each column must be for its title and its cells."""
    return [
        max([len(title), *(len(_cell(row.get(column))) for row in rows)])
        for title, column in zip(_titles(columns), columns, strict=True)
    ]


def _titles(columns: Sequence[str]) -> list[str]:
    return [column.upper().replace("_", "-") for column in columns]


def _line(cells: Iterable[str], widths: Iterable[int], rights: Iterable[bool]) -> str:
    placed = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, rights, strict=True)
    ]
    return _GAP.join(placed).rstrip()


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def size_text(size_bytes: float) -> str:
    """Return a number of bytes as people read it: 1.5 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


class StatusLine:
    """One line at the bottom of a terminal that is written over again and again.

    Whoever writes to the same terminal writes through the line: `write` puts text above it. A terminal
    that takes nothing now (Ctrl-S) is not waited for.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show `text` in place of what was there, cut to the width of the terminal."""
        if not select.select([], [self._stream], [], 0)[1]:
            return
        width = shutil.get_terminal_size().columns
        self._stream.write(f"\r{_ERASE}{text[: width - 1]}")
        self._stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._stream.write(f"\r{_ERASE}")
            self._stream.flush()
            self._is_shown = False

    def write(self, text: str) -> int:
        """Write text of somebody else; the line comes back when it is shown again."""
        self.clear()
        return self._stream.write(text)

    def flush(self) -> None:
        """Pass on what was written."""
        self._stream.flush()


class Progress:
    """A bar on standard error for work that takes long; nothing where nobody looks.

    A context manager; `total` is in the unit that `advance` counts, None if it is not known.
    """

    def __init__(
        self, label: str, total: int | None, *, is_bytes: bool = False, is_shown: bool = True
    ) -> None:
        self._label = label
        self._total = total
        self._is_bytes = is_bytes
        self._is_shown = is_shown and sys.stderr.isatty()
        self._done = 0
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        """Start counting; the bar comes later, if at all."""
        return self

    def advance(self, amount: int) -> None:
        """Count `amount` more as done."""
        self._done += amount
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        elif self._is_shown and time.monotonic() - self._started > _QUIET_S:
            self._show()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away, if there is one."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        rich = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
        amount = rich.DownloadColumn if self._is_bytes else rich.MofNCompleteColumn
        speed = [rich.TransferSpeedColumn()] if self._is_bytes else []
        self._bar = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            amount(),
            *speed,
            rich.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task(self._label, total=self._total, completed=self._done)
        self._bar.start()
