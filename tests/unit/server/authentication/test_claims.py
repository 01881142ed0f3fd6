"""The user that a client claims to be, from a message that is not checked yet."""

import pytest

from ottla.server.authentication.claims import claimed_user


@pytest.mark.parametrize(
    ("mechanism", "message", "user"),
    [
        ("PLAIN", b"\0ann\0secret", "ann"),
        ("PLAIN", b"ann\0ann\0secret", "ann"),
        ("PLAIN", b"\0ann\0sec\0ret", ""),
        ("PLAIN", b"ann", ""),
        ("PLAIN", b"", ""),
        ("PLAIN", b"\0\xff\0secret", "\ufffd"),
        ("SCRAM-SHA-256", b"n,,n=ann,r=nonce", "ann"),
        ("SCRAM-SHA-512", b"y,a=ann,n=ann,r=nonce,tokenauth=true", "ann"),
        ("SCRAM-SHA-256", b"n,,r=nonce", ""),
        ("SCRAM-SHA-256", b"\xff", ""),
        ("SCRAM-SHA-256", b"n,,n=" + b"x" * 5000 + b",r=nonce", "x" * 256),
    ],
)
def test_claimed_user(mechanism: str, message: bytes, user: str) -> None:
    """Any bytes are a claim; a long name is cut, because it is kept in memory."""
    assert claimed_user(mechanism, message) == user
