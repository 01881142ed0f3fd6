"""Principals: the users that requests come from, as Kafka writes them. Pure."""

from typing import NamedTuple

USER = "User"
"""The type of every principal that authenticates."""


class Principal(NamedTuple):
    """A principal by its type and its name, such as `User` and `ann`."""

    kind: str
    name: str

    def text(self) -> str:
        """Return the principal as Kafka writes it, such as `User:ann`."""
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Principal":
        """Return the principal of a text such as `User:ann`; ValueError if it has no colon."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"{text!r} is not a principal such as User:ann")
        return cls(kind, name)
