"""Templates of produced records: a fixed table of functions, no expressions."""

import random
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from ottla.base.errors import ConfigError

Template = Callable[[int, int], str]
"""Returns the text of a record, given its number from 0 and the time in ms."""

_CALL = re.compile(r"\{\{\s*([a-z_]+)\s*(?:\(([^(){}]*)\))?\s*\}\}")
# Not for secrets: test records need no unpredictable numbers.
_RANDOM = random.Random()  # noqa: S311


def compile_template(text: str, *, is_template: bool = True) -> Template:
    """Return a function that fills in the templates of a text; ConfigError for an unknown one.

    `{{n}}`, `{{uuid}}`, `{{now}}` (ms), `{{iso_now}}`, `{{random_int(1,6)}}`, `{{choice(a,b,c)}}`.
    """
    if not is_template or "{{" not in text:
        return lambda number, now_ms: text
    pieces: list[str | Template] = []
    position = 0
    for match in _CALL.finditer(text):
        pieces += [text[position : match.start()], _function(match[1], match[2])]
        position = match.end()
    pieces.append(text[position:])
    if any(isinstance(piece, str) and "{{" in piece for piece in pieces):
        raise ConfigError(
            f"{text[:80]!r} has a malformed template: write {{{{n}}}} or {{{{choice(a,b)}}}}"
        )
    return lambda number, now_ms: "".join(
        piece if isinstance(piece, str) else piece(number, now_ms) for piece in pieces
    )


def _function(name: str, arguments: str | None) -> Template:
    if name in _PLAIN and arguments is None:
        return _PLAIN[name]
    parts = [part.strip() for part in (arguments or "").split(",")]
    if name == "random_int" and len(parts) == 2:
        return _random_int(parts[0], parts[1])
    if name == "choice" and arguments:
        return lambda number, now_ms: _RANDOM.choice(parts)
    raise ConfigError(
        f"{{{{{name}}}}} is not a template: use {{{{n}}}}, {{{{uuid}}}}, {{{{now}}}}, {{{{iso_now}}}}, "
        "{{random_int(1,6)}} or {{choice(a,b,c)}}"
    )


def _random_int(lowest: str, highest: str) -> Template:
    try:
        low, high = int(lowest), int(highest)
    except ValueError:
        raise ConfigError(
            f"random_int({lowest},{highest}) needs two integers, as in {{{{random_int(1,6)}}}}"
        ) from None
    if low > high:
        raise ConfigError(f"random_int({low},{high}) is empty: write the smaller number first")
    return lambda number, now_ms: str(_RANDOM.randint(low, high))


_PLAIN: Mapping[str, Template] = {
    "n": lambda number, now_ms: str(number),
    "uuid": lambda number, now_ms: str(uuid.UUID(int=_RANDOM.getrandbits(128), version=4)),
    "now": lambda number, now_ms: str(now_ms),
    "iso_now": lambda number, now_ms: datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(
        timespec="milliseconds"
    ),
}
