"""The registry subject of a serde's schema: the topic's name with -key or -value appended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.client.errors import SerializationError
from ottla.client.serdes.registry import Registry, Schema
from ottla.client.serdes.serde import Serde


@dataclass(frozen=True)
class Registration:
    """A schema's registration in a registry; subject None means that the topic is not known."""

    schema: Schema
    registry: Registry
    subject: str | None
    registers: bool

    def schema_id(self) -> int:
        """Return the schema id; SerializationError if it is not registered and must not be."""
        if self.subject is None:
            raise SerializationError(
                "a schema is registered under its topic's name: use the serde with `.of(topic, "
                "is_key=…)` or set its subject"
            )
        if self.registers:
            return self.registry.register(self.subject, self.schema)
        return self.registry.lookup(self.subject, self.schema)[0]


def registered(
    make: Callable[[str | None], Serde[Any]], subject: str | None, name: str
) -> Serde[Any]:
    """Return the serde that `make` creates for a subject, or for each topic's subject if None."""
    plain = make(subject)
    if subject is not None:
        return plain

    def bind(topic: str, is_key: bool) -> Serde[Any]:
        return make(f"{topic}-{'key' if is_key else 'value'}")

    return Serde(plain.serialize, plain.deserialize, name, bind=bind)
