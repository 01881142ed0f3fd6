"""The report of `bench.streams`: tables of medians, next to the targets."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Turns = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Figures of the turns by setting (`count, 1,000 keys`) and contender."""


def _median(turns: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [turn[name] for turn in turns if turn.get(name) is not None]
    return statistics.median(values) if values else None


def _cell(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|---{'|--:' * (len(head) - 1)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def throughput(turns: Turns) -> list[str]:
    """Return the table of the figures of each contender with each setting."""
    rows = []
    for setting, by_contender in turns.items():
        for contender, result in by_contender.items():
            known = {name: _median(result, name) for name in _COLUMNS}
            rows.append(
                [setting, contender, *(_cell(known[n], f) for n, (_, f) in _COLUMNS.items())]
            )
    return _table(["", "contender", *(title for title, _ in _COLUMNS.values())], rows)


_COLUMNS = {
    "rate": ("records/s", ",.0f"),
    "cpu_us": ("CPU µs/record", ",.2f"),
    "broker_us": ("broker's", ",.2f"),
    "p50_ms": ("p50 ms", ",.0f"),
    "p99_ms": ("p99 ms", ",.0f"),
    "memory_mb": ("MB", ",.0f"),
    "records": ("records", ",.0f"),
}


def refusals(turns: Turns) -> list[str]:
    """Return the turns without figures, and the reasons."""
    values = [
        f"- {setting}, {contender}: {turn['refused']}"
        for setting, by_contender in turns.items()
        for contender, each in by_contender.items()
        for turn in each
        if "refused" in turn
    ]
    return ["Refused:", "", *values, ""] if values else []


def contenders(turns: Turns) -> list[str]:
    """Return the table of start-up and memory."""
    by_contender: dict[str, list[Mapping[str, Any]]] = {}
    for each in turns.values():
        for contender, result in each.items():
            by_contender.setdefault(contender, []).extend(result)
    rows = [
        [
            contender,
            _cell(_median(result, "first_output_s"), ".1f"),
            _cell(_median(result, "memory_mb")),
            _cell(max((turn.get("memory_mb") or 0 for turn in result), default=None)),
        ]
        for contender, result in by_contender.items()
    ]
    return _table(["contender", "start to first output, s", "MB, median", "MB, most"], rows)


def aims(turns: Turns, sides: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the table of ratios and targets."""
    rows = []
    for setting, by_contender in turns.items():
        rows += _aims_of(setting, by_contender)
    for shape in ("100 B", "1 KB"):
        for side, peer, aim in (
            ("read", "kafka", 2.0),
            ("read", "kafka tuned", 1.5),
            ("write", "kafka tuned", 1.0),
        ):
            ours, theirs = sides.get(f"{side} {shape}, ottla"), sides.get(f"{side} {shape}, {peer}")
            if ours and theirs:
                rows.append(
                    _judged(f"{side} {shape} beside {peer}, rows/s", ours[0] / theirs[0], aim)
                )
    return _table(["figure", "ratio", "aim", ""], rows)


def _aims_of(
    setting: str, by_contender: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[list[str]]:
    rate = {name: _median(each, "rate") for name, each in by_contender.items()}
    cost = {name: _median(each, "cpu_us") for name, each in by_contender.items()}
    latency = _median(by_contender.get("ottla", ()), "p50_ms")
    rows = []
    ours, own_cost = rate.get("ottla"), cost.get("ottla")
    required = {"a call a record": 5.0}
    if setting.startswith(("stateless", "columns")):
        required["pyspark"] = 0.9
    for peer, aim in required.items():
        theirs = rate.get(peer)
        if ours and theirs:
            rows.append(_judged(f"{setting} beside {peer}, records/s", ours / theirs, aim))
    quix = cost.get("quix")
    if own_cost and quix:
        rows.append(_judged(f"{setting} beside quix, records per CPU second", quix / own_cost, 1.0))
    if latency is not None:
        met = "met" if latency <= _LATENCY_MS else "missed"
        rows.append([f"{setting}, end to end p50, ms", f"{latency:,.0f}", f"≤ {_LATENCY_MS}", met])
    return rows


_LATENCY_MS = 500


def _judged(name: str, ratio: float, aim: float) -> list[str]:
    return [name, f"{ratio:.2f}", f"≥ {aim}", "met" if ratio >= aim else "missed"]


def sources_and_sinks(sides: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the table of reading and writing."""
    rows = [
        [name, f"{rate:,.0f}", f"{spark:.2f}", f"{broker:.2f}"]
        for name, (rate, spark, broker) in sides.items()
    ]
    return _table(["", "rows/s", "Spark µs/row", "broker µs/row"], rows) if rows else []


def drivers(entries: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the table of the test driver."""
    rows = [
        [name, f"{rate:,.0f}", f"{first * 1000:.1f}"] for name, (rate, first) in entries.items()
    ]
    return _table(["TopologyTestDriver", "records/s", "first answer, ms"], rows) if rows else []
