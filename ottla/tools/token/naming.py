"""A delegation token by its id or its HMAC, and its times as commands show them."""

from typing import Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.admin.apache.delegation_tokens import DelegationToken
from ottla.client.brokers import Brokers
from ottla.operations.access.tokens import hmac_of, row_of
from ottla.operations.offsets.moments import render_moment

# HmacSHA512.
_HMAC_BYTES = 64


class NamedToken(NamedTuple):
    """A token of a command line; `token_id` is None if its HMAC was given."""

    token_id: str | None
    hmac: bytes

    def __str__(self) -> str:
        """Return a name for sentences, without the HMAC."""
        return "the token" if self.token_id is None else f"token {self.token_id}"


def find(brokers: Brokers, text: str) -> NamedToken:
    """Return the token with this id or HMAC. OttlaError if the cluster lists no such id.

    An HMAC is sent as it is: a renewer need not be allowed to describe the token.
    """
    try:
        hmac = hmac_of(text)
    except ValueError:
        hmac = b""
    if len(hmac) == _HMAC_BYTES:
        return NamedToken(None, hmac)
    for token in tokens.describe_delegation_tokens(brokers):
        if token.token_id == text:
            return NamedToken(text, token.hmac)
    raise OttlaError(f"no token has the id '{text}': `ottla token list` lists the tokens")


def shown(token: DelegationToken) -> dict[str, Any]:
    """Return the row of a token; its times are in milliseconds and as text."""
    return {
        **row_of(token),
        "issued": render_moment(token.issue_ms),
        "expires": render_moment(token.expiry_ms),
        "ends": render_moment(token.max_ms),
    }
