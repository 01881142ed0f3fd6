"""The server's part of PLAIN and SCRAM, against the client's part and against wrong messages."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.security.options import Credentials
from ottla.client.security.sasl import exchange
from ottla.security.exchanges import (
    PLAIN,
    AuthenticationFailed,
    ClientExchange,
    PlainExchange,
    ScramExchange,
    ScramLogin,
    check_of,
)
from ottla.security.mock_credentials import mock
from ottla.security.scram import ScramMechanism, credential_of

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def scram(
    user: str, password: str, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
) -> ScramExchange:
    """Return an exchange in which one user is known."""
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), SALT, 4096)
    credential = credential_of(mechanism, SALT, salted, 4096)
    unknown = ScramLogin("", mock(mechanism, b"another", 4096))
    known = {user: ScramLogin(user, credential)}
    return ScramExchange(mechanism, lambda name: known.get(name, unknown), nonce=SERVER_NONCE)


def run(server: ClientExchange, mechanism: str, user: str, password: str) -> str:
    """Run an exchange with Ottla's client; return the user that the server knows then."""
    client = exchange(Credentials(mechanism, user, password), CLIENT_NONCE)
    message = next(client)
    while True:
        try:
            message = client.send(server.step(message))
        except StopIteration:
            return server.user


def test_scram_is_that_of_the_example_in_the_standard() -> None:
    """The messages come from RFC 7677."""
    server = scram("user", "pencil")
    assert server.step(b"n,,n=user,r=" + CLIENT_NONCE.encode()) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.user == ""
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.step(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.user == "user"


def test_nonce_that_librdkafka_repeats_is_accepted() -> None:
    """librdkafka before 2.6.1 puts its nonce before the server's, which begins with it."""
    server = scram("ann", "secret")
    first = server.step(b"n,,n=ann,r=x").decode()
    bare = f"c=biws,r=x{first.split(',')[0][2:]}"
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    signed = f"n=ann,r=x,{first},{bare}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    server.step(f"{bare},p={base64.b64encode(proof).decode()}".encode())
    assert server.user == "ann"


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=20)
@given(_NAMES, _NAMES, st.sampled_from(ScramMechanism))
def test_any_user_and_password_are_accepted(
    user: str, password: str, mechanism: ScramMechanism
) -> None:
    """Commas and equality signs are escaped in SCRAM."""
    assert run(scram(user, password, mechanism), mechanism.mechanism_name, user, password) == user
    assert run(PlainExchange(check_of({user: password})), PLAIN, user, password) == user


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("eve", "secret")])
def test_wrong_password_and_unknown_user_get_the_same_answer(user: str, password: str) -> None:
    """The client cannot find out which users exist; the sentences are Kafka's."""
    sentence = (
        "^Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256$"
    )
    with pytest.raises(AuthenticationFailed, match=sentence):
        run(scram("ann", "secret"), "SCRAM-SHA-256", user, password)
    sentence = "^Authentication failed: Invalid username or password$"
    with pytest.raises(AuthenticationFailed, match=sentence):
        run(PlainExchange(check_of({"ann": "secret"})), PLAIN, user, password)


def test_no_proof_matches_a_mock_credential() -> None:
    """Not even one by a client that knows the mock: it has no user."""
    keys = credential_of(ScramMechanism.SCRAM_SHA_256, SALT, b"salted", 4096)
    server = ScramExchange(
        ScramMechanism.SCRAM_SHA_256, lambda _: ScramLogin("", keys), nonce=SERVER_NONCE
    )
    first = server.step(b"n,,n=eve,r=x").decode()
    bare = f"c=biws,r=x{SERVER_NONCE}"
    key = hmac.digest(b"salted", b"Client Key", "sha256")
    signature = hmac.digest(keys.stored_key, f"n=eve,r=x,{first},{bare}".encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        server.step(f"{bare},p={base64.b64encode(proof).decode()}".encode())
    assert server.user == ""


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=ann",
        b"p=tls-unique,,n=ann,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=nn,r=x",
        b"n,a=bob,n=ann,r=x",
        b"n,,n=ann,r=x,tokenauth=true",
        b"\xff",
        b"n,,n=" + b"a" * 5000 + b",r=x",
    ],
)
def test_wrong_first_message_is_refused(message: bytes) -> None:
    """Another authorization identity would be another user (CVE-2017-12610)."""
    with pytest.raises(AuthenticationFailed):
        scram("ann", "secret").step(message)


@pytest.mark.parametrize(
    "final",
    [
        b"c=biws,r=x,p=AAAA",
        b"c=biws,r=y" + SERVER_NONCE.encode() + b",p=AAAA",
        b"c=eSws,r=x" + SERVER_NONCE.encode() + b",p=AAAA",
    ],
)
def test_nonce_of_another_exchange_is_refused(final: bytes) -> None:
    """Otherwise a recorded last message could be replayed (CVE-2024-56128)."""
    server = scram("ann", "secret")
    server.step(b"n,,n=ann,r=x")
    with pytest.raises(AuthenticationFailed, match="nonce"):
        server.step(final)
    with pytest.raises(AuthenticationFailed, match="over"):
        server.step(final)
    assert not server.user


def test_exchange_ends_with_its_last_message() -> None:
    """After a failure and after success no message is accepted."""
    plain = PlainExchange(check_of({"ann": "secret"}))
    plain.step(b"\0ann\0secret")
    with pytest.raises(AuthenticationFailed):
        plain.step(b"\0ann\0secret")


@pytest.mark.parametrize(
    "message", [b"", b"\0ann", b"\0\0secret", b"\0ann\0", b"bob\0ann\0secret", b"\0ann\0secret\0"]
)
def test_wrong_plain_message_is_refused(message: bytes) -> None:
    """Also one that asks for another user's rights."""
    server = PlainExchange(check_of({"ann": "secret", "bob": "other"}))
    with pytest.raises(AuthenticationFailed):
        server.step(message)
    assert not server.user
