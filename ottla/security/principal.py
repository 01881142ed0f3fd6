"""Principals: the users that requests come from, as Kafka writes them. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode

USER = "User"
"""The type of every principal that authenticates."""


class Principal(NamedTuple):
    """A principal by its type and its name, such as `User` and `ann`.

    Compare principals as values: types from requests may contain colons, so that the texts of two
    principals may be equal. Texts are for the wire, the coordination tree and the log.
    """

    kind: str
    name: str

    def text(self) -> str:
        """Return the principal as Kafka writes it, such as `User:ann`."""
        return f"{self.kind}:{self.name}"

    @property
    def is_user(self) -> bool:
        """True for the type of every principal that authenticates."""
        return self.kind == USER

    @classmethod
    def parse(cls, text: str) -> "Principal":
        """Return the principal of a text such as `User:ann`; ValueError if it has no colon."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"{text!r} is not a principal such as User:ann")
        return cls(kind, name)


def check_users(principals: Iterable[Principal]) -> None:
    """Raise ApiError INVALID_PRINCIPAL_TYPE unless the principals are users.

    Only users authenticate. The owner of a token is the user that logs in with it, so an owner of
    another type would be a user that it is not.
    """
    if not all(principal.is_user for principal in principals):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def is_principal(text: str) -> bool:
    """Return True if a text has the form of a principal."""
    return ":" in text


ANY_USER = Principal(USER, "*")
"""The principal of entries that concern every user."""
