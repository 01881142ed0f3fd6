"""A curve of measured values as a picture (SVG), for `--plot FILE`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.base.errors import ConfigError

_WIDTH, _HEIGHT = 720, 240
_LEFT, _TOP, _BOTTOM, _RIGHT = 70, 24, 36, 12
_OTHER_FORMATS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".html")
_MARKED = 60
"""Up to this number of points, each one has a mark."""


class Curve(NamedTuple):
    """Points (x, y) in the order of x, and the texts around them."""

    title: str
    x_label: str
    y_label: str
    points: Sequence[tuple[float, float]]


def check_target(path: str | None) -> None:
    """Raise ConfigError if the picture cannot be written: before hours of measuring, not after."""
    if path is None:
        return
    target = Path(path)
    reason = ""
    if target.is_dir():
        reason = "it is a folder: add the name of a file"
    elif not target.absolute().parent.is_dir():
        reason = "its folder does not exist"
    elif target.suffix.lower() in _OTHER_FORMATS:
        reason = f"the picture is SVG: name it {target.stem}.svg"
    elif not os.access(target if target.exists() else target.absolute().parent, os.W_OK):
        reason = "writing there is not permitted: name another folder"
    if reason:
        raise ConfigError(f"cannot write --plot {path}: {reason}")


def write(path: str, curve: Curve) -> None:
    """Write a picture: both axes start at 0 and end at the largest value.

    If there are more points than pixels, each pixel shows the largest of its values.
    """
    top = max((y for _, y in curve.points), default=0) or 1
    end = max((x for x, _ in curve.points), default=0) or 1
    placed = [
        (_LEFT + x * _WIDTH / end, _TOP + _HEIGHT * (1 - y / top))
        for x, y in _thinned(curve.points)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    marks = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in placed[: _MARKED + 1]]
    foot, width = _TOP + _HEIGHT, _LEFT + _WIDTH + _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {foot + _BOTTOM}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{foot + _BOTTOM}" fill="white"/>',
        f'<text x="{_LEFT}" y="14">{_escaped(curve.title)}</text>',
        f'<path fill="none" stroke="#777" d="M{_LEFT},{_TOP}V{foot}H{_LEFT + _WIDTH}"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 4}" text-anchor="end">{_number(top)}</text>',
        f'<text x="{_LEFT - 4}" y="{foot}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 4}" y="{foot - _HEIGHT // 2}" text-anchor="end">'
        f"{_escaped(curve.y_label)}</text>",
        f'<text x="{_LEFT + _WIDTH}" y="{foot + 14}" text-anchor="end">{_number(end)}</text>',
        f'<text x="{_LEFT + _WIDTH // 2}" y="{foot + 28}" text-anchor="middle">'
        f"{_escaped(curve.x_label)}</text>",
        f'<polyline fill="none" stroke="black" points="{line}"/>',
        *(marks if len(placed) <= _MARKED else []),
        "</svg>",
    ]
    Path(path).write_text("\n".join(parts) + "\n", encoding="utf-8")


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    step = -(-len(points) // _WIDTH)
    if step <= 1:
        return list(points)
    blocks = (points[at : at + step] for at in range(0, len(points), step))
    return [max(block, key=lambda point: point[1]) for block in blocks]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
