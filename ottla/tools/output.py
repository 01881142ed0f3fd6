"""The output of the command line: tables, JSON, sentences, progress.

Results go to standard output, everything else to standard error. Only this module may use rich, and
only when it shows a progress bar: importing rich takes as long as the rest of a command.
"""

import json
import os
import re
import select
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import click

from ottla.base.loading import deferred_module

# Only a terminal needs rich, which takes 50 ms to load.
if TYPE_CHECKING:
    import shutil

    from rich import console, progress
else:
    shutil = deferred_module("shutil")
    console = deferred_module("rich.console")
    progress = deferred_module("rich.progress")

TABLE = "table"
JSON = "json"
# Work that ends sooner than this shows no progress bar.
_QUIET_S = 1.0
_ROWS_AT_ONCE = 1000
_GAP = "  "
# Of values below their row.
_INDENT = "    "
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_ERASE = "\x1b[2K"


class Output:
    """The output format of a command; each command prints one result through it."""

    def __init__(self, output_format: str = TABLE) -> None:
        self.is_json = output_format == JSON

    def rows(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Sequence[str],
        *,
        empty: str = "",
        is_ascii: bool = True,
    ) -> None:
        """Print rows: as a table of `columns`, or as a JSON list with all fields of the rows.

        `empty` is the text that replaces an empty table. JSON escapes the characters that are not
        ASCII if `is_ascii`. A table that is too wide for a terminal has headings of several lines,
        and if that is not enough, its last columns are on a line below each row.
        """
        if self.is_json:
            click.echo(json.dumps(list(rows), indent=2, default=str, ensure_ascii=is_ascii))
        elif rows and sys.stdout.isatty():
            click.echo(_fitted_table(rows, columns, shutil.get_terminal_size().columns))
        elif rows:
            click.echo(render_table(rows, columns))
        elif empty:
            note(empty)

    def stream(self, columns: Sequence[str]) -> "RowStream":
        """Return a stream that prints the rows of a long result one by one; JSON is one object per
        line.
        """
        return RowStream(columns, is_json=self.is_json)

    def findings(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Print the findings of an examination: problems are highlighted, with the remedy on the
        next line.

        Each row has a state (ok, warn, fail), a check, the finding, and a remedy, which may be
        empty.
        """
        if self.is_json:
            click.echo(json.dumps(list(rows), indent=2))
            return
        width = max(len(row["check"]) for row in rows)
        for row in rows:
            word, remedy = row["state"], row["remedy"]
            mark = word.upper() if remedy else word
            if _is_styled():
                mark = click.style(mark, fg=_COLOURS[word], bold=bool(remedy))
            gap = " " * (4 - len(word))
            click.echo(f"{mark}{gap}  {row['check'].ljust(width)}  {row['found']}")
            if remedy:
                click.echo(f"      {'':{width}}  -> {remedy}")

    def done(self, sentence: str, **facts: Any) -> None:
        """Report success: as a sentence, or as a JSON object of the facts."""
        click.echo(json.dumps(facts, default=str) if self.is_json else sentence)


class RowStream:
    """Rows printed as they arrive, in chunks of a thousand; leaving the context prints the rest."""

    def __init__(self, columns: Sequence[str], *, is_json: bool) -> None:
        self._columns = columns
        self._is_json = is_json
        self._waiting: list[Mapping[str, Any]] = []
        self._widths: list[int] = []

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row, and print if a chunk is full."""
        self._waiting.append(row)
        if len(self._waiting) >= _ROWS_AT_ONCE:
            self._print()

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows, and print the full chunks."""
        for row in rows:
            self.append(row)

    def __enter__(self) -> "RowStream":
        """Return this stream."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Print the remaining rows."""
        if kind is None and self._waiting:
            self._print()

    def _print(self) -> None:
        rows, self._waiting = self._waiting, []
        if self._is_json:
            click.echo("\n".join(json.dumps(row, default=str) for row in rows))
            return
        # One header over all chunks; later rows keep the column widths of the first chunk if they
        # fit.
        text = render_table(rows, self._columns, widths=self._widths)
        click.echo(text if not self._widths else text.partition("\n")[2])
        self._widths = self._widths or column_widths(rows, self._columns)


def note(text: str) -> None:
    """Print a note on standard error."""
    click.echo(text, err=True)


def is_terminal() -> bool:
    """Return True if standard input and standard error are a terminal, so that a prompt is
    possible.
    """
    return sys.stdin.isatty() and sys.stderr.isatty()


def _is_styled() -> bool:
    """Return True if standard output shows colours, and the user wants them (no-color.org)."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and sys.stdout.isatty()


def render_table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, widths: Sequence[int] = ()
) -> str:
    """Return aligned columns under a header; numbers are right-aligned.

    `widths` are the minimum widths of the columns, if given.
    """
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    least = column_widths(rows, columns)
    if widths:
        least = [max(pair) for pair in zip(least, widths, strict=True)]
    rights = [_is_number(rows, column) for column in columns]
    headline = _line(_titles(columns), least, rights)
    if _is_styled():
        headline = click.style(headline, bold=True)
    return "\n".join([headline, *(_line(line, least, rights) for line in cells)])


def _fitted_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], room: int) -> str:
    """Return a table whose lines are not longer than `room`, if its first column permits it."""
    for count in range(len(columns), 0, -1):
        for is_stacked in (False, True):
            table = _Layout(rows, columns[:count], is_stacked)
            if table.width <= room:
                return table.text(columns[count:], room)
    return table.text(columns[1:], room)


class _Layout:
    """A table of some columns; `is_stacked` breaks wide headings at their hyphens."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], is_stacked: bool
    ) -> None:
        self._rows = rows
        self._columns = columns
        cells = [max(len(_cell(row.get(column))) for row in rows) for column in columns]
        titles = [
            _stacked(title, width) if is_stacked else [title]
            for title, width in zip(_titles(columns), cells, strict=True)
        ]
        height = max(map(len, titles))
        self._titles = [[""] * (height - len(lines)) + lines for lines in titles]
        self._widths = [
            max(width, *map(len, lines)) for width, lines in zip(cells, self._titles, strict=True)
        ]
        self.width = sum(self._widths) + len(_GAP) * (len(columns) - 1)

    def text(self, folded: Sequence[str], room: int) -> str:
        """Return the table, with the folded columns below each row."""
        rights = [_is_number(self._rows, column) for column in self._columns]
        lines = [
            click.style(line, bold=True) if _is_styled() else line
            for line in (
                _line(titles, self._widths, rights) for titles in zip(*self._titles, strict=True)
            )
        ]
        for row in self._rows:
            cells = [_cell(row.get(column)) for column in self._columns]
            lines += [_line(cells, self._widths, rights), *_below(row, folded, room)]
        return "\n".join(lines)


def _stacked(title: str, width: int) -> list[str]:
    """Return a heading in lines that are not wider than the cells, if its words permit it."""
    lines = [""]
    for word in title.replace("-", "- ").split():
        if lines[-1] and len(lines[-1] + word) > width:
            lines.append("")
        lines[-1] += word
    return lines


def _below(row: Mapping[str, Any], columns: Sequence[str], room: int) -> list[str]:
    """Return the lines with the named values of a row, without those that are empty."""
    lines: list[str] = []
    for title, column in zip(_titles(columns), columns, strict=True):
        cell = _cell(row.get(column))
        if cell == "-":
            continue
        # A long list is broken after a comma.
        for number, part in enumerate(re.findall("[^,]*,|[^,]+", cell)):
            text = part if number else f"{title.lower()}={part}"
            gap = "" if number else _GAP
            if lines and len(lines[-1] + gap + text) <= room:
                lines[-1] += gap + text
            else:
                lines.append(_INDENT + text)
    return lines


def column_widths(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[int]:
    """Return the width that each column needs for its title and its cells."""
    return [
        max([cells_of(title), *(cells_of(_cell(row.get(column))) for row in rows)])
        for title, column in zip(_titles(columns), columns, strict=True)
    ]


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return all(isinstance(row.get(column), int | float | None) for row in rows)


def _titles(columns: Sequence[str]) -> list[str]:
    return [column.upper().replace("_", "-") for column in columns]


def _line(cells: Iterable[str], widths: Iterable[int], rights: Iterable[bool]) -> str:
    placed = [
        " " * (width - cells_of(cell)) + cell if right else cell + " " * (width - cells_of(cell))
        for cell, width, right in zip(cells, widths, rights, strict=True)
    ]
    return _GAP.join(placed).rstrip()


def cells_of(text: str) -> int:
    """Return how many cells of a terminal a text takes: Chinese characters take two each."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def size_text(size_bytes: float) -> str:
    """Return a number of bytes in readable form, such as 1.5 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 topic` and `2 topics`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


class StatusLine:
    """One line at the bottom of a terminal that is overwritten again and again.

    All other output to this terminal must use `write`, which puts its text above the line. `show`
    does nothing while the terminal accepts no output (Ctrl-S).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = False

    def show(self, text: str) -> None:
        """Replace the line with `text`, cut to the width of the terminal."""
        if not select.select([], [self._stream], [], 0)[1]:
            return
        width = shutil.get_terminal_size().columns
        self._stream.write(f"\r{_ERASE}{text[: width - 1]}")
        self._stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        """Erase the line."""
        if self._is_shown:
            self._stream.write(f"\r{_ERASE}")
            self._stream.flush()
            self._is_shown = False

    def write(self, text: str) -> int:
        """Write other text above the line; the line reappears at the next `show`."""
        self.clear()
        return self._stream.write(text)

    def flush(self) -> None:
        """Flush the terminal."""
        self._stream.flush()


class ProgressBar:
    """A progress bar on standard error for long work; shows nothing if it is not a terminal.

    A context manager; `total` is in the unit of `advance`, or None if it is not known.
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

    def __enter__(self) -> "ProgressBar":
        """Start counting; the bar appears later, and only if the work takes long."""
        return self

    def advance(self, amount: int) -> None:
        """Add `amount` to the work that is done."""
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
        """Remove the bar if it is shown."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        amount = progress.DownloadColumn if self._is_bytes else progress.MofNCompleteColumn
        speed = [progress.TransferSpeedColumn()] if self._is_bytes else []
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            amount(),
            *speed,
            progress.TimeRemainingColumn(),
            console=console.Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._label, total=self._total, completed=self._done)
        self._bar.start()
