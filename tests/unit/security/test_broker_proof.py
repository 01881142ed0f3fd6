"""The exchange by which brokers prove that they belong to the same cluster."""

import pytest

from ottla.security.broker_proof import (
    NUMBER_BYTES,
    KeysByGeneration,
    ProofError,
    ProofOfBroker,
    ProofToPeer,
)

KEYS = {1: b"s" * 32}
OTHER_KEYS = {1: b"o" * 32}
A = b"a" * NUMBER_BYTES
B = b"b" * NUMBER_BYTES
_GENERATION_BYTES = 4


def test_two_brokers_with_the_same_secret_accept_each_other() -> None:
    """The peer then knows the id of the broker."""
    broker, peer = ProofOfBroker(KEYS, 7, A), ProofToPeer(KEYS, B)
    reply = peer.step(broker.first())
    assert peer.broker_id == -1
    assert peer.step(broker.second(reply)) == b""
    assert peer.broker_id == 7


def test_a_broker_without_the_secret_is_not_accepted() -> None:
    """It cannot compute the second message."""
    peer = ProofToPeer(KEYS, B)
    peer.step(ProofOfBroker(OTHER_KEYS, 7, A).first())
    with pytest.raises(ProofError):
        peer.step(b"x" * 32)
    assert peer.broker_id == -1


def test_a_peer_without_the_secret_is_not_accepted() -> None:
    """A broker does not fetch records from a stranger."""
    broker = ProofOfBroker(KEYS, 7, A)
    reply = ProofToPeer(OTHER_KEYS, B).step(broker.first())
    with pytest.raises(ProofError):
        broker.second(reply)


def test_a_proof_is_invalid_in_another_exchange() -> None:
    """The numbers differ each time."""
    broker, peer = ProofOfBroker(KEYS, 7, A), ProofToPeer(KEYS, B)
    proof = broker.second(peer.step(broker.first()))
    later = ProofToPeer(KEYS, b"c" * NUMBER_BYTES)
    later.step(broker.first())
    with pytest.raises(ProofError):
        later.step(proof)


def test_a_peers_proof_cannot_be_returned_as_the_brokers() -> None:
    """The two sides sign different messages."""
    peer = ProofToPeer(KEYS, B)
    reply = peer.step(ProofOfBroker(OTHER_KEYS, 7, A).first())
    with pytest.raises(ProofError):
        peer.step(reply[_GENERATION_BYTES + NUMBER_BYTES :])


def test_a_proof_is_invalid_on_another_connection() -> None:
    """A program between two brokers has two connections with TLS, whose handshakes differ."""
    broker, peer = ProofOfBroker(KEYS, 7, A, b"one"), ProofToPeer(KEYS, B, binding=b"other")
    reply = peer.step(broker.first())
    with pytest.raises(ProofError, match="the peer does not know the secret"):
        broker.second(reply)
    unbound = ProofOfBroker(KEYS, 7, A, b"other")
    stranger = ProofToPeer(KEYS, B)
    stranger.step(unbound.first())
    with pytest.raises(ProofError):
        stranger.step(unbound.second(peer_reply(unbound, b"other")))


def peer_reply(broker: ProofOfBroker, binding: bytes) -> bytes:
    """Return the reply of a peer with this binding."""
    return ProofToPeer(KEYS, B, binding=binding).step(broker.first())


OLD, NEW, NEXT = b"1" * 32, b"2" * 32, b"5" * 32


@pytest.mark.parametrize(
    ("broker_keys", "peer_keys", "generation"),
    [
        ({1: OLD}, {1: OLD, 2: NEW}, 1),
        ({1: OLD, 2: NEW}, {1: OLD}, 1),
        ({1: OLD, 2: NEW}, {1: OLD, 2: NEW}, 2),
        ({2: NEW}, {1: OLD, 2: NEW}, 2),
        ({2: NEW, 5: NEXT}, {2: NEW}, 2),
    ],
)
def test_brokers_use_the_newest_key_that_both_know(
    broker_keys: KeysByGeneration, peer_keys: KeysByGeneration, generation: int
) -> None:
    """While a secret is replaced, one of them learns of it before the other."""
    broker, peer = ProofOfBroker(broker_keys, 7, A), ProofToPeer(peer_keys, B)
    peer.step(broker.second(peer.step(broker.first())))
    assert (peer.broker_id, peer.generation) == (7, generation)


def test_key_that_is_not_valid_any_more_is_refused() -> None:
    """Both by the peer, and by the broker that connects."""
    with pytest.raises(ProofError, match="broker 7 has generation 1 of the secret, which is over"):
        ProofToPeer({2: NEW}, B).step(ProofOfBroker({1: OLD}, 7, A).first())
    broker = ProofOfBroker({2: NEW}, 7, A)
    reply = ProofToPeer({1: OLD}, B).step(broker.first())
    with pytest.raises(ProofError, match="the peer proves itself by generation 1"):
        broker.second(reply)


@pytest.mark.parametrize("message", [b"", b"\xff" * (8 + NUMBER_BYTES), b"x" * 500])
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    """A negative id, or a wrong size."""
    with pytest.raises(ProofError):
        ProofToPeer(KEYS, B).step(message)


@pytest.mark.parametrize("reply", [b"", b"x" * 51, b"x" * 53])
def test_a_malformed_reply_is_refused(reply: bytes) -> None:
    """The broker ends the connection."""
    with pytest.raises(ProofError):
        ProofOfBroker(KEYS, 7, A).second(reply)
