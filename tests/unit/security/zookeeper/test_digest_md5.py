"""Both sides of DIGEST-MD5; the client by the example of the RFC."""

import pytest

from ottla.security.zookeeper.digest_md5 import (
    AuthenticationFailed,
    Exchange,
    ServerExchange,
    exchange,
)

# RFC 2831, section 4.
CHALLENGE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,'
    b"charset=utf-8"
)


def chris(name: str = "chris") -> Exchange:
    """Return the exchange of the example, at the point where the server's challenge is expected."""
    steps = exchange(name, "secret", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")
    assert next(steps) == b""
    return steps


def test_response_is_that_of_the_rfc() -> None:
    """The proof is the expected one, and the server's proof is verified."""
    steps = chris()
    assert steps.send(CHALLENGE) == (
        b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",'
        b'nc=00000001,cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
        b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
    )
    with pytest.raises(StopIteration):
        steps.send(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


def test_server_that_does_not_know_the_password_is_rejected() -> None:
    """A server without the password cannot compute its proof."""
    steps = chris()
    steps.send(CHALLENGE)
    with pytest.raises(AuthenticationFailed, match="does not know the password"):
        steps.send(b"rspauth=00000000000000000000000000000000")


@pytest.mark.parametrize(
    ("challenge", "sentence"),
    [(b"rspauth=1", "no nonce"), (b'nonce="1",qop="auth-int,auth-conf"', "requires qop=auth-int")],
)
def test_challenge_that_cannot_be_answered_is_an_error(challenge: bytes, sentence: str) -> None:
    """A missing nonce, or a required protection of the connection."""
    with pytest.raises(AuthenticationFailed, match=sentence):
        chris().send(challenge)


def test_quotation_marks_in_a_name_are_escaped() -> None:
    """They would end the field otherwise."""
    assert rb'username="a\"b\\c"' in chris('a"b\\c').send(CHALLENGE)


def outcome(username: str, password: str) -> bool:
    """Return whether a client with this user and password is accepted by the server of ann."""
    server = ServerExchange("ann", "sécret", "n1")
    client = exchange(username, password, "n2")
    challenge = server.step(next(client))
    final = server.step(client.send(challenge))
    with pytest.raises(StopIteration):
        client.send(final)
    return server.is_proven


def test_server_accepts_the_user_with_the_password_only() -> None:
    """Both sides have proven that they know it."""
    assert outcome("ann", "sécret")
    for username, password in (("ben", "sécret"), ("ann", "secret"), ("", "")):
        with pytest.raises(AuthenticationFailed, match="the client does not know the password"):
            outcome(username, password)


def _response(**changes: str) -> bytes:
    """Return a client's correct response with some fields replaced by others."""
    client = exchange("ann", "secret", "n2")
    next(client)
    text = client.send(ServerExchange("ann", "secret", "n1").step(b"")).decode()
    for name, value in changes.items():
        field = name.replace("_", "-")
        text = ",".join(
            f"{field}={value}" if row.startswith(f"{field}=") else row for row in text.split(",")
        )
    return text.encode()


def test_response_to_another_challenge_is_refused() -> None:
    """A recorded login cannot be repeated; a client cannot act as another user."""
    server = ServerExchange("ann", "secret", "n1")
    server.step(b"")
    server.step(_response())
    assert server.is_proven
    for changes in ({"nonce": '"n9"'}, {"nc": "00000002"}, {"qop": "auth-int"}, {"response": ""}):
        server = ServerExchange("ann", "secret", "n1")
        server.step(b"")
        with pytest.raises(AuthenticationFailed):
            server.step(_response(**changes))
        assert not server.is_proven
    server = ServerExchange("ann", "secret", "n3")
    server.step(b"")
    with pytest.raises(AuthenticationFailed):
        server.step(_response())
    with pytest.raises(AuthenticationFailed):
        server.step(_response() + b',authzid="ben"')
