"""The user that a client claims to be, from its SASL message, before the claim is checked. Pure."""

import re

from ottla.security.exchanges import PLAIN

# Longer names are no users: an exchange refuses them.
_NAME_MAX = 256
_SCRAM_USER = re.compile(rb"[^,]*,[^,]*,n=([^,]{1,1024})")
_PLAIN_FIELDS = 3


def claimed_user(mechanism: str, message: bytes) -> str:
    """Return the user that the first message of PLAIN or SCRAM names; empty if it names none."""
    if mechanism == PLAIN:
        fields = message.split(b"\0", _PLAIN_FIELDS)
        name = fields[1] if len(fields) == _PLAIN_FIELDS else b""
    else:
        found = _SCRAM_USER.match(message)
        name = b"" if found is None else found[1]
    return name[:_NAME_MAX].decode(errors="replace")
