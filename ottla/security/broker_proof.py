"""The exchange by which two brokers prove that they belong to the same cluster.

A broker that claims an id may fetch as a follower and move the high watermark, so the claim must be
proven (CVE-2018-1288). Both sides know a secret that is stored in the coordination tree. Each
sends a random number, and the HMAC-SHA256 (RFC 2104) of both numbers and the claimed id proves the
knowledge of the secret without sending it. Both sides prove it, so a broker never fetches from a
stranger. The messages travel in SaslAuthenticate requests, with a mechanism of their own.

    broker                                    peer
    id, number A                       ->
                                       <-     number B, HMAC("peer", id, A, B)
    HMAC("broker", id, A, B)           ->
                                       <-     (empty)

It proves the identity when the connection is established; it does not encrypt. On a network that an
attacker can change, the listener for brokers needs TLS as well.
"""

import hashlib
import hmac
import struct

from ottla.base.errors import OttlaError

MECHANISM = "OTTLA-BROKER"
SECRET_BYTES = 32
NUMBER_BYTES = 16

_ID = struct.Struct(">i")
_PROOF_BYTES = hashlib.sha256().digest_size


class ProofError(OttlaError):
    """The peer does not know the secret, or does not follow the exchange."""


def _proof(secret: bytes, side: bytes, broker_id: int, first: bytes, second: bytes) -> bytes:
    message = side + _ID.pack(broker_id) + first + second
    return hmac.digest(secret, message, "sha256")


class ProofOfBroker:
    """The side of the broker that connects; `number` is random and used once."""

    def __init__(self, secret: bytes, broker_id: int, number: bytes) -> None:
        self._secret = secret
        self._broker_id = broker_id
        self._number = number

    def first(self) -> bytes:
        """Return the first message."""
        return _ID.pack(self._broker_id) + self._number

    def second(self, reply: bytes) -> bytes:
        """Return the second message; raises ProofError if the peer has not proven itself."""
        if len(reply) != NUMBER_BYTES + _PROOF_BYTES:
            raise ProofError("the peer's proof has a wrong size")
        number, proof = reply[:NUMBER_BYTES], reply[NUMBER_BYTES:]
        expected = _proof(self._secret, b"peer", self._broker_id, self._number, number)
        if not hmac.compare_digest(proof, expected):
            raise ProofError("the peer does not know the secret of this cluster")
        return _proof(self._secret, b"broker", self._broker_id, self._number, number)


class ProofToPeer:
    """The side of the broker that is connected to; `broker_id` is the proven id, -1 before.

    `former` is the identity that the peer has until then, and after a wrong proof.
    """

    def __init__(self, secret: bytes, number: bytes, former: object = None) -> None:
        self.broker_id = -1
        self.former = former
        self._secret = secret
        self._number = number
        self._claim: tuple[int, bytes] | None = None

    def step(self, message: bytes) -> bytes:
        """Return the reply to a message; raises ProofError if the broker has not proven itself."""
        if self._claim is None:
            return self._begin(message)
        broker_id, number = self._claim
        self._claim = None
        expected = _proof(self._secret, b"broker", broker_id, number, self._number)
        if not hmac.compare_digest(message, expected):
            raise ProofError(f"the proof of broker {broker_id} is wrong")
        self.broker_id = broker_id
        return b""

    def _begin(self, message: bytes) -> bytes:
        if self.broker_id >= 0 or len(message) != _ID.size + NUMBER_BYTES:
            raise ProofError("the first message of a broker is its id and a number")
        (broker_id,) = _ID.unpack_from(message)
        if broker_id < 0:
            raise ProofError(f"{broker_id} is not a broker id")
        number = message[_ID.size :]
        self._claim = broker_id, number
        return self._number + _proof(self._secret, b"peer", broker_id, number, self._number)
