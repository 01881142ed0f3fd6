"""The exchange by which brokers prove that they belong to the same cluster."""

import pytest

from ottla.security.broker_proof import NUMBER_BYTES, ProofError, ProofOfBroker, ProofToPeer

SECRET = b"s" * 32
OTHER_SECRET = b"o" * 32
A = b"a" * NUMBER_BYTES
B = b"b" * NUMBER_BYTES


def test_two_brokers_with_the_same_secret_accept_each_other() -> None:
    """The peer then knows the id of the broker."""
    broker, peer = ProofOfBroker(SECRET, 7, A), ProofToPeer(SECRET, B)
    reply = peer.step(broker.first())
    assert peer.broker_id == -1
    assert peer.step(broker.second(reply)) == b""
    assert peer.broker_id == 7


def test_a_broker_without_the_secret_is_not_accepted() -> None:
    """It cannot compute the second message."""
    peer = ProofToPeer(SECRET, B)
    peer.step(ProofOfBroker(OTHER_SECRET, 7, A).first())
    with pytest.raises(ProofError):
        peer.step(b"x" * 32)
    assert peer.broker_id == -1


def test_a_peer_without_the_secret_is_not_accepted() -> None:
    """A broker does not fetch records from a stranger."""
    broker = ProofOfBroker(SECRET, 7, A)
    reply = ProofToPeer(OTHER_SECRET, B).step(broker.first())
    with pytest.raises(ProofError):
        broker.second(reply)


def test_a_proof_is_invalid_in_another_exchange() -> None:
    """The numbers differ each time."""
    broker, peer = ProofOfBroker(SECRET, 7, A), ProofToPeer(SECRET, B)
    proof = broker.second(peer.step(broker.first()))
    later = ProofToPeer(SECRET, b"c" * NUMBER_BYTES)
    later.step(broker.first())
    with pytest.raises(ProofError):
        later.step(proof)


def test_a_peers_proof_cannot_be_returned_as_the_brokers() -> None:
    """The two sides sign different messages."""
    peer = ProofToPeer(SECRET, B)
    reply = peer.step(ProofOfBroker(OTHER_SECRET, 7, A).first())
    with pytest.raises(ProofError):
        peer.step(reply[NUMBER_BYTES:])


@pytest.mark.parametrize("message", [b"", b"\xff" * (4 + NUMBER_BYTES), b"x" * 500])
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    """A negative id, or a wrong size."""
    with pytest.raises(ProofError):
        ProofToPeer(SECRET, B).step(message)


@pytest.mark.parametrize("reply", [b"", b"x" * 47, b"x" * 49])
def test_a_malformed_reply_is_refused(reply: bytes) -> None:
    """The broker ends the connection."""
    with pytest.raises(ProofError):
        ProofOfBroker(SECRET, 7, A).second(reply)
