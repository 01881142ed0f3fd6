"""The report of `bench.compare`: a table, a chart, and the figures of docs/performance.md.

`python -m bench.report RESULT.json [--page docs/performance.md]` draws the chart of a result again,
and writes its table into the page, between the two marks that the page has for it.
"""

import argparse
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.aims import AIMS, ratio_of

OURS = "ottla"
# Another version of Ottla in the same run.
BEFORE = "before"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
_ROW, _LEFT, _WIDTH, _RIGHT, _TOP = 18, 300, 420, 90, 64
# The ratios at the edges of the chart; others are drawn at the edge.
_LEAST, _MOST = 0.05, 20.0
_MET, _MISSED, _LINE = "#2e7d32", "#c62828", "#777"

Figures = Mapping[str, Mapping[str, Sequence[float]]]
"""Values of the rounds by figure and server."""


def medians(figures: Figures, peer: str) -> dict[str, tuple[float, float]]:
    """Return the medians of Ottla and the peer for each figure that has an aim, in the aims' order."""
    return {
        name: (statistics.median(figures[name][OURS]), statistics.median(figures[name][peer]))
        for name in AIMS
        if figures.get(name, {}).keys() >= {OURS, peer}
    }


def table(figures: Figures, peer: str) -> list[str]:
    """Return the lines of a Markdown table of medians and ratios."""
    has_before = any(BEFORE in values for values in figures.values())
    more, rule = (" before | ratio to before |", "--:|--:|") if has_before else ("", "")
    lines = [
        f"| figure | unit | ottla | {peer} | ratio | aim | |{more}",
        f"|---|---|--:|--:|--:|--:|---|{rule}",
    ]
    for name, (ours, theirs) in medians(figures, peer).items():
        aim = AIMS[name]
        result = "met" if aim.is_met(ours, theirs) else "missed"
        ratio = ratio_of(ours, theirs)
        values = f"{_number(ours)} | {_number(theirs)} | {ratio:.2f}"
        line = f"| {name} | {aim.unit} | {values} | {aim} | {result} |"
        lines.append(line + (_earlier(figures[name], ours) if has_before else ""))
    return lines


def _earlier(values: Mapping[str, Sequence[float]], ours: float) -> str:
    if BEFORE not in values:
        return " | |"
    before = statistics.median(values[BEFORE])
    return f" {_number(before)} | {ratio_of(ours, before):.2f} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def head(about: Mapping[str, Any]) -> str:
    """Return the sentence that says how the figures were measured."""
    command = about.get("command", "bench.compare")
    return (
        f"Medians of {about['rounds']} interleaved rounds on {about['date']}; {about['machine']}, "
        f"{about['cores']} cores, Linux {about['linux']}, Python {about['python']}, load average before "
        f"{about['load']:.1f}. Command: `python -m {command} {about['arguments']}".rstrip()
        + "`."
    )


def _position(ratio: float) -> float:
    # A logarithmic scale, so that 2 and 0.5 are equally far from 1.
    at = min(max(ratio, _LEAST), _MOST)
    return _LEFT + _WIDTH * math.log(at / _LEAST) / math.log(_MOST / _LEAST)


def chart(figures: Figures, peer: str, title: str) -> str:
    """Return an SVG with a bar for the ratio of each figure, and a mark at its aim."""
    rows = medians(figures, peer)
    height = _TOP + _ROW * len(rows) + 12
    width = _LEFT + _WIDTH + _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="20" font-size="15">{title}</text>',
        f'<text x="12" y="38" fill="{_LINE}">ratio to {peer}, logarithmic; the mark is the aim; '
        "green: met, red: missed</text>",
    ]
    for ratio in (0.1, 0.2, 0.5, 1, 2, 5, 10):
        at = _position(ratio)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 6}" y2="{height - 8}" stroke="#ddd"/>'
        )
        parts.append(
            f'<text x="{at:.1f}" y="{_TOP - 10}" text-anchor="middle" fill="{_LINE}">{ratio:g}</text>'
        )
    for number, (name, (ours, theirs)) in enumerate(rows.items()):
        parts += _bar(name, ours, theirs, _TOP + _ROW * number)
    return "\n".join([*parts, "</svg>", ""])


def _bar(name: str, ours: float, theirs: float, top: float) -> list[str]:
    aim, ratio = AIMS[name], ratio_of(ours, theirs)
    start, end = sorted((_position(1), _position(ratio)))
    colour = _MET if aim.is_met(ours, theirs) else _MISSED
    bound = ratio_of(aim.bound, theirs) if aim.is_absolute else aim.bound
    at, base = _position(bound), top + 13
    return [
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{name}</text>',
        f'<rect x="{start:.1f}" y="{top + 4}" width="{max(end - start, 1):.1f}" height="11" '
        f'fill="{colour}"/>',
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top + 1}" y2="{top + 18}" stroke="black"/>',
        f'<text x="{_LEFT + _WIDTH + 8}" y="{base}">{ratio:.2f}</text>',
    ]


def write(result: Path) -> list[str]:
    """Write the table and the chart beside a result; return the lines of the table and its head."""
    document = json.loads(result.read_text(encoding="utf-8"))
    figures, peer = document["figures"], document["about"]["peer"]
    lines = [head(document["about"]), "", *table(figures, peer)]
    title = f"Ottla beside Apache {peer.title()}, {document['about']['date']}"
    text = "\n".join([f"# {title}", "", *lines, ""])
    result.with_suffix(".md").write_text(text, encoding="utf-8")
    result.with_suffix(".svg").write_text(chart(figures, peer, title), encoding="utf-8")
    return lines


def fill(page: Path, lines: Sequence[str], picture: str) -> None:
    """Replace what a page has between its two marks by the table and a link to the chart."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} lacks the lines {BEGIN} and {END}")
    inner = [BEGIN, "", f"![Ratios to Apache Kafka]({picture})", "", *lines, "", END]
    page.write_text(before + "\n".join(inner) + after, encoding="utf-8")


def publish(result: Path, page: Path) -> None:
    """Fill the page from a result; its chart is copied to the images of the documentation."""
    lines = write(result)
    picture = page.parent / "images" / "performance.svg"
    picture.write_bytes(result.with_suffix(".svg").read_bytes())
    fill(page, lines, "images/performance.svg")


def main() -> None:
    """Draw the chart of a result and fill the page if one is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page is None:
        write(options.result)
    else:
        publish(options.result, options.page)


if __name__ == "__main__":
    main()
