"""Files of offsets, as kafka-consumer-groups reads and writes them. Pure."""

from collections.abc import Sequence

from ottla.base.errors import ConfigError
from ottla.operations.numbers import INT_MAX, natural_number
from ottla.operations.offsets.plans import Key, OffsetDifference


def parse_offsets(text: str) -> dict[Key, int]:
    """Return the offsets of lines `TOPIC,PARTITION,OFFSET`, or with blanks instead of commas.

    ConfigError names the malformed line.
    """
    offsets: dict[Key, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        parts = line.split(",") if "," in line else line.split()
        parts = [part.strip().strip('"') for part in parts]
        partition = natural_number(parts[1], INT_MAX) if len(parts) == 3 else None
        offset = natural_number(parts[-1])
        if partition is None or offset is None:
            raise ConfigError(
                f"line {number}: {line!r} is not of the form TOPIC,PARTITION,OFFSET, as in "
                "orders,0,42"
            )
        offsets[parts[0], partition] = offset
    return offsets


def to_csv(differences: Sequence[OffsetDifference]) -> str:
    """Return the planned offsets as lines `topic,partition,offset` (--export)."""
    return "".join(
        f"{row.topic},{row.partition},{row.after}\n" for row in differences if row.after is not None
    )
