"""The client's messages of SASL, by the examples of the RFCs."""

import pytest

from ottla.client.security.options import Credentials
from ottla.client.security.sasl import AuthenticationFailed, exchange

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
PENCIL = Credentials("SCRAM-SHA-256", "user", "pencil")


def test_plain_is_one_message() -> None:
    """RFC 4616: an empty identity, the user and the password."""
    steps = exchange(Credentials("PLAIN", "tim", "tanstaaftanstaaf"), NONCE)
    assert next(steps) == b"\0tim\0tanstaaftanstaaf"
    with pytest.raises(StopIteration):
        steps.send(b"")


def test_scram_is_that_of_the_rfc() -> None:
    """The proof is the expected one, and the server's signature is verified."""
    steps = exchange(PENCIL, NONCE)
    assert next(steps) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert steps.send(FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        steps.send(FINAL)


def test_a_delegation_token_is_an_extension_of_the_first_message() -> None:
    """The server then looks for a token with this id, instead of a user (KIP-48)."""
    steps = exchange(Credentials("SCRAM-SHA-512", "id", "hmac", is_token=True), NONCE)
    assert next(steps) == b"n,,n=id,r=rOprNGfwEbeRWgbNEkqO,tokenauth=true"


def test_separators_in_a_user_name_are_escaped() -> None:
    """RFC 5802: a comma is =2C, an equals sign =3D."""
    steps = exchange(Credentials("SCRAM-SHA-512", "a=b,c", "x"), NONCE)
    assert next(steps) == b"n,,n=a=3Db=2Cc,r=rOprNGfwEbeRWgbNEkqO"


@pytest.mark.parametrize(
    "first",
    [
        FIRST.replace(b"r=rOpr", b"r=other"),
        FIRST.replace(b"i=4096", b"i=1"),
        FIRST.replace(b"i=4096", b"i=99999999"),
        FIRST.replace(b"i=4096", b"i=x"),
        b"",
    ],
)
def test_a_wrong_first_message_of_the_server_ends_the_exchange(first: bytes) -> None:
    """Nothing is derived from the password for another nonce, or for too few or many iterations."""
    steps = exchange(PENCIL, NONCE)
    next(steps)
    with pytest.raises(AuthenticationFailed, match="first message"):
        steps.send(first)


@pytest.mark.parametrize("final", [FINAL.replace(b"v=6", b"v=7"), b"e=other-error", b""])
def test_a_server_that_does_not_know_the_password_is_refused(final: bytes) -> None:
    """Its signature is wrong or missing."""
    steps = exchange(PENCIL, NONCE)
    next(steps)
    steps.send(FIRST)
    with pytest.raises(AuthenticationFailed, match="does not know the password"):
        steps.send(final)
