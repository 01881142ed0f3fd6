"""SCRAM credentials: the keys of RFC 5802 and their text in the tree."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.scram import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    parse_credential,
)


def test_keys_are_those_of_the_standard() -> None:
    """RFC 5802 has an example with SHA-1 only; RFC 7677 has one with SHA-256."""
    salt = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    credential = credential_of(ScramMechanism.SCRAM_SHA_256, salt, salted, 4096)
    assert credential.text() == (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
    )


@given(st.binary(), st.binary(), st.binary(), st.integers(4096, 16_384))
def test_credential_survives_its_text(salt: bytes, key: bytes, other: bytes, count: int) -> None:
    """Base64 has `=` signs, which also separate names from values."""
    credential = ScramCredential(salt, key, other, count)
    assert parse_credential(credential.text()) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt",
        "salt=AA==,stored_key=AA==,server_key=AA==",
        "salt=AA==,stored_key=AA==,server_key=AA==,iterations=many",
        "salt=A,stored_key=AA==,server_key=AA==,iterations=4096",
    ],
)
def test_other_text_is_an_error(text: str) -> None:
    """The caller learns that it is not a credential."""
    with pytest.raises(ValueError, match="not a SCRAM credential"):
        parse_credential(text)
