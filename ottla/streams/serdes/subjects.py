"""Under which name a serde's schema stands in a registry: the topic's, with -key or -value behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.errors import SerializationError
from ottla.streams.serdes.registry import Registry, Schema
from ottla.streams.serdes.serde import Serde


@dataclass(frozen=True)
class Registration:
    """A schema in a registry; subject None: the topic is not known."""

    schema: Schema
    registry: Registry
    subject: str | None
    registers: bool

    def schema_id(self) -> int:
        """Return the schema's number; SerializationError where it is not registered and may not be."""
        if self.subject is None:
            raise SerializationError(
                "a schema is registered under its topic's name: use the serde with `.of(topic, "
                "is_key=…)` or give it a subject"
            )
        if self.registers:
            return self.registry.register(self.subject, self.schema)
        return self.registry.lookup(self.subject, self.schema)[0]


def registered(
    make: Callable[[str | None], Serde[Any]], subject: str | None, name: str
) -> Serde[Any]:
    """Return the serde that `make` makes of a subject; without one, of each topic's."""
    plain = make(subject)
    if subject is not None:
        return plain

    def bind(topic: str, is_key: bool) -> Serde[Any]:
        return make(f"{topic}-{'key' if is_key else 'value'}")

    return Serde(plain.serialize, plain.deserialize, name, bind=bind)
