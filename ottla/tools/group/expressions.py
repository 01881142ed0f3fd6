"""Offset expressions (`ottla.tools.positions`) as targets of a reset."""

from ottla.client.resets import Target
from ottla.tools.positions import Anchor, parse_position

_TARGETS = {
    Anchor.BEGINNING: Target.EARLIEST,
    Anchor.END: Target.LATEST,
    Anchor.OFFSET: Target.OFFSET,
    Anchor.TAIL: Target.TAIL,
    Anchor.HEAD: Target.HEAD,
    Anchor.TIME: Target.TIME,
}


def target_of(text: str, now_ms: int) -> tuple[Target, int]:
    """Return the target of an expression, with its offset, count or time; ValueError if it has
    none.
    """
    position = parse_position(text, now_ms)
    if position.anchor is Anchor.STORED:
        raise ValueError("`stored` is where the group is already: name another position")
    return _TARGETS[position.anchor], position.value
