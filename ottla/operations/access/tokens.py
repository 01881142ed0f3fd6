"""Values of delegation tokens, for `kafka-delegation-tokens` and `ottla token`. Pure."""

import base64
import re
from typing import Any

from ottla.client.admin.apache.delegation_tokens import DelegationToken
from ottla.operations.access.entries import principal_of

_NO_DIGIT = re.compile(r"[^A-Za-z0-9+/]")
# Java's bytes have a sign.
_MAX_BYTE = 127


def hmac_of(text: str) -> bytes:
    """Return the bytes of an HMAC in base64; the padding may be missing.

    ValueError with the sentence of java.util.Base64 for another text.
    """
    # Java has one byte for each character: ISO 8859-1, and ? for those that it lacks.
    data = text.encode("latin-1", "replace").decode("latin-1")
    if len(data) == 1:
        raise ValueError("Input byte[] should at least have 2 bytes for base64 bytes")
    end = found.start() if (found := _NO_DIGIT.search(data)) else len(data)
    digits, rest = data[:end], data[end:]
    if rest and not rest.startswith("="):
        code = ord(rest[0])
        raise ValueError(f"Illegal base64 character {code - 256 if code > _MAX_BYTE else code:x}")
    # Characters of the last group, which has four if it is complete.
    count = len(digits) % 4
    if rest and (count == 0 or (count == 2 and not rest.startswith("=="))):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if count == 1:
        raise ValueError("Last unit does not have enough valid bits")
    padding = 4 - count
    if rest[padding:]:
        raise ValueError(f"Input byte array has incorrect ending byte at {end + padding}")
    return base64.b64decode(digits + "=" * (-count % 4))


def principal_parts(text: str) -> tuple[str, str]:
    """Return type and name of a principal, either may be empty; ValueError without a colon."""
    kind, _, name = principal_of(text).partition(":")
    return kind, name


def hmac_text(token: DelegationToken) -> str:
    """Return the HMAC of a token in base64: the password of a client that logs in with it."""
    return base64.b64encode(token.hmac).decode()


def row_of(token: DelegationToken) -> dict[str, Any]:
    """Return a token as JSON has it, with its times in milliseconds."""
    return {
        "token_id": token.token_id,
        "hmac": hmac_text(token),
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issue_ms": token.issue_ms,
        "expiry_ms": token.expiry_ms,
        "max_ms": token.max_ms,
    }
