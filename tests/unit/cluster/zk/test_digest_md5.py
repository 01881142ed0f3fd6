"""The client's messages of DIGEST-MD5, by the example of the RFC."""

import pytest

from ottla.cluster.zk.digest_md5 import AuthenticationFailed, Exchange, exchange

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
