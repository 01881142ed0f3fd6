"""Random scenarios and events for compare.py."""

import random
from collections.abc import Callable

from tests.streams.recorded.chain import OF_STREAMS, OF_TABLES
from tests.streams.recorded.configured import CONFIGURED
from tests.streams.recorded.record import topics_of
from tests.streams.recorded.shapes import SHAPES
from tests.streams.recorded.topologies import SCENARIOS

_STEPS = (0, 0, 0, 1, 1, 2, 3, 5, 9, 25)
_LATE = (0, 0, 0, 0, 1, 3, 6, 11, 24)
_KEYS = ("a", "a", "a", "b", "b", "aa", "c", "-")
_VALUES = ("a", "a", "b", "b", "c", "x", "y", "ab", "-", "-")
# The length of a unit of time, in ms: segments of stores are minutes long.
_UNITS = (1, 1, 1, 700, 20_000)

Made = tuple[str, list[str]]


def _events(rng: random.Random, topics: list[str], unit: int) -> list[str]:
    now, lines = rng.choice((0, 0, 3, 12)) * unit, []
    for _ in range(rng.choice((6, 15, 40))):
        now += rng.choice(_STEPS) * unit
        late = rng.choice(_LATE) * unit
        jitter = rng.choice((0, 0, 0, 1, -1)) if unit > 1 else 0
        arguments = [rng.choice(topics), rng.choice(_KEYS), str(max(0, now - late + jitter))]
        arguments.append(rng.choice(_VALUES))
        if rng.random() < 0.15:
            arguments.append(rng.choice(("h=1", "h=2,i=-")))
        lines.append(" ".join(["pipe", *arguments]))
        if rng.random() < 0.05:
            lines.append(f"clock {rng.choice((30, 120, 700, 1500))}")
    return lines


def _line(name: str, **words: object) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in words.items() if value != "")])


def _maybe(rng: random.Random, value: str) -> str:
    return rng.choice(("", "", value))


def _windows(rng: random.Random, unit: int, *, is_sliding: bool = False) -> dict[str, object]:
    size = rng.choice((1, 2, 5, 10, 10, 13)) * unit
    entries: dict[str, object] = {"size": size, "grace": rng.choice((0, 0, 3, 7, 20)) * unit}
    if not is_sliding and rng.random() < 0.5:
        entries["advance"] = max(1, size // rng.choice((1, 2, 3, 4)))
    return entries


def _cached(cache: str) -> dict[str, object]:
    return {"cache": cache, "retention": 1 << 40} if cache else {}


def _window_scenario(rng: random.Random, unit: int) -> Made:
    kind = rng.choice(("time", "time", "sliding", "session", "unlimited"))
    options = _windows(rng, unit, is_sliding=kind != "time")
    fold = rng.choice(("count", "reduce", "aggregate"))
    is_on_close = rng.random() < 0.4 and kind != "unlimited"
    then = "" if is_on_close else rng.choice(("", "suppress", "limit", "filter", "group"))
    if kind == "unlimited" and then == "suppress":
        then = ""
    cache = _maybe(rng, "1")
    if rng.random() < 0.2 and kind != "unlimited":
        options["retention"] = (int(str(options["size"])) * 2 + int(str(options["grace"]))) * 2
    options |= {
        "close": "1" if is_on_close else "",
        "then": then,
        **_cached("" if kind == "unlimited" else cache),
        "throttled": _maybe(rng, "1"),
    }
    return _line("windows", kind=kind, fold=fold, **options), ["in"]


def _window_table_scenario(rng: random.Random, unit: int) -> Made:
    kind = rng.choice(("time", "sliding", "session"))
    options = _windows(rng, unit, is_sliding=kind != "time") | _cached(_maybe(rng, "1"))
    options |= {"filter": _maybe(rng, "1"), "then": _maybe(rng, "suppress")}
    how = rng.choice(("inner", "left", "outer"))
    return _line("window_tables", kind=kind, how=how, **options), ["in", "other"]


def _cogroup_scenario(rng: random.Random, unit: int) -> Made:
    kind = rng.choice(("", "time", "sliding", "session"))
    options = _windows(rng, unit, is_sliding=kind != "time")
    return _line("cogroups", kind=kind, **options, **_cached(_maybe(rng, "1"))), ["in", "other"]


def _stream_join_scenario(rng: random.Random, unit: int) -> Made:
    options = _windows(rng, unit, is_sliding=True)
    options["before"] = rng.choice((0, 1, 4, 9)) * unit
    options["after"] = rng.choice((0, 1, 4, 9)) * unit
    then = rng.choice(("", "", "count", "join"))
    how = rng.choice(("inner", "left", "outer"))
    line = _line("stream_joins", how=how, then=then, throttled=_maybe(rng, "1"), **options)
    return line, ["in", "other"] + ["third"] * (then == "join")


_TABLES = ("", "versioned", "filtered", "folded", "mapped")


def _stream_table_scenario(rng: random.Random, unit: int) -> Made:
    kind = rng.choice(_TABLES)
    wait: object = ""
    if kind == "versioned" and rng.random() < 0.5:
        wait = rng.choice((1, 5, 10)) * unit
    history = rng.choice((10, 15, 30)) * unit
    how = rng.choice(("inner", "left"))
    line = _line("stream_tables", how=how, other=kind, wait=wait, history=history)
    return f"{line}{' cache=1' if rng.random() < 0.3 else ''}", ["in", "other"]


def _global_join_scenario(rng: random.Random, unit: int) -> Made:
    how, key = rng.choice(("inner", "left")), rng.choice(("", "value"))
    return _line("global_joins", how=how, key=key), ["in", "other"]


def _table_join_scenario(rng: random.Random, unit: int) -> Made:
    by = rng.choice(("", "foreign"))
    how = rng.choice(("inner", "left") if by else ("inner", "left", "outer"))
    then = rng.choice(("", "", "filter", "group", "join"))
    options = {
        "in": rng.choice(_TABLES),
        "other": rng.choice(_TABLES),
        "kept": rng.choice(("", "1", "versioned")),
        "history": rng.choice((2, 10)) * unit,
        "cache": _maybe(rng, "1"),
    }
    line = _line("table_joins", by=by, how=how, then=then, **options)
    return line, ["in", "other"] + ["third"] * (then == "join")


def _suppress_scenario(rng: random.Random, unit: int) -> Made:
    then = rng.choice(("", "", "group", "join"))
    bound = rng.choice(({"records": 2}, {"records": 1}, {"bytes": 100}, {"bytes": 150}, {}))
    kind = rng.choice(("", "filtered", "folded", "mapped"))
    options: dict[str, object] = {
        "in": kind,
        "wait": rng.choice((0, 1, 5, 20)) * unit,
        "cache": _maybe(rng, "1"),
    }
    options["full"] = _maybe(rng, "1")
    line = _line("suppresses", then=then, **bound, **options)
    return line, ["in"] + ["other"] * (then == "join")


def _chain_scenario(rng: random.Random, unit: int) -> Made:
    ops = "".join(rng.choice(OF_STREAMS + OF_TABLES) for _ in range(rng.choice((2, 3, 4, 6))))
    topics = ["in"] * 3
    for step, each in enumerate(ops, 1):
        kinds = {"M": "merged", "G": "global"} | dict.fromkeys("BbAHUXY", "table")
        kinds |= dict.fromkeys("JLO", "joined")
        if each in kinds:
            topics.append(f"{kinds[each]}{step}")
    options = _windows(rng, unit)
    source = rng.choice(("stream", "stream", "table", "extracted"))
    options |= {
        "wait": rng.choice((1, 5)) * unit,
        "cache": "" if set(ops) & set("WSD") else _maybe(rng, "1"),
        "kept": rng.getrandbits(7),
        "close": _maybe(rng, "1"),
    }
    if source == "table":
        options["in"] = rng.choice(_TABLES)
    return _line("chain", ops=ops, source=source, **options), topics


_SHAPED: dict[str, Callable[[random.Random, int], Made]] = {
    "windows": _window_scenario,
    "window_tables": _window_table_scenario,
    "cogroups": _cogroup_scenario,
    "stream_joins": _stream_join_scenario,
    "stream_tables": _stream_table_scenario,
    "global_joins": _global_join_scenario,
    "table_joins": _table_join_scenario,
    "suppresses": _suppress_scenario,
    "chain": _chain_scenario,
}
assert set(_SHAPED) == {*SHAPES, "chain"}
_UNLIKE = {"cached_windows", "cached_sessions"}
"""In Kafka, expired entries remain visible in the cache until it is full."""
NAMES = [
    each
    for each in (*SCENARIOS, *CONFIGURED, "processor_api", *_SHAPED, "commands")
    if each not in _UNLIKE
]


def scenario(name: str, rng: random.Random) -> Made:
    """Return a scenario's line and its events."""
    unit = rng.choice(_UNITS)
    if name == "commands":
        return _command_scenario(rng, unit)
    if name in _SHAPED:
        line, topics = _SHAPED[name](rng, unit)
        events = _events(rng, topics, unit)
        # Kafka's buffer of a join with a grace period fails at records without key, even in a left
        # join.
        is_buffered = name == "stream_tables" and " wait=" in line
        return line, [event for event in events if not (is_buffered and " - " in event[:10])]
    return name, _events(rng, topics_of(name), 1)


def _command_scenario(rng: random.Random, unit: int) -> Made:
    kind = rng.choice(("key_value", "timestamped", "window", "session", "versioned"))
    options: dict[str, object] = {"retention": rng.choice((5, 20, 40)) * unit, "size": 3 * unit}
    # Kafka's cached session stores fail when they are read backwards.
    cache = "" if kind == "session" else _maybe(rng, "1")
    line = _line("commands", kind=kind, **(options | _cached(cache)))
    now, lines = 0, []
    for _ in range(rng.choice((10, 30))):
        now += rng.choice(_STEPS) * unit
        key = rng.choice(("a", "aa", "b", "ab"))
        lines.append(f"pipe in {key} {now} {_command(rng, kind, now, unit)}")
        if rng.random() < 0.1:
            lines.append(f"clock {rng.choice((30, 120, 700, 1500))}")
    return line, lines


def _command(rng: random.Random, kind: str, now: int, unit: int) -> str:
    value = rng.choice(("x", "y", "z", "-"))
    times = sorted(max(0, now - rng.choice((0, 1, 3, 6, 11, 24, 45)) * unit) for _ in range(2))
    keys = [rng.choice(("-", "a", "aa", "b", "c")) for _ in range(2)]
    if rng.random() < 0.1:
        ticks = f"tick,{rng.choice(('stream', 'wall'))},{rng.choice((3, 10, 100))}"
        return rng.choice((ticks, "stop"))
    pair = f"{times[0]},{times[1]}"
    span = f"{keys[0]},{keys[1]}"
    walks = ["prefix,a", f"range,{keys[0]},{keys[1]}", f"rrange,{keys[0]},{keys[1]}", "all", "rall"]
    commands = {
        "key_value": [f"put,{value}"] * 4 + [f"pia,{value}", "del", "get", *walks],
        "timestamped": [f"put,{value},{now}"] * 4 + ["del", "get", *walks],
        "window": [f"put,{value},{times[0]}"] * 6
        + [f"get,{times[0]}", f"fetch,{pair}", f"bfetch,{pair}", f"fall,{pair}", "all"]
        + ["ball", f"bfall,{pair}", f"kfetch,{span},{pair}", f"bkfetch,{span},{pair}"],
        "session": [f"put,{value},{pair}"] * 6
        + [f"rm,{pair}", f"get,{pair}", f"find,{pair}", "fetch", "bfetch"]
        + [f"{each},{span},{pair}" for each in ("kfind", "bkfind")]
        + [f"bfind,{pair}", f"kfetch,{span}", f"bkfetch,{span}"],
        "versioned": [f"put,{value},{times[0]}"] * 5
        + [f"del,{times[0]}", "get", f"asof,{times[0]}", f"asof,{times[1]}"],
    }
    return rng.choice(commands[kind])
