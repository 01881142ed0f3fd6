"""The exchange by which two brokers prove that they belong to the same cluster.

A broker that claims an id may fetch as a follower and move the high watermark, so the claim must be
proven (CVE-2018-1288). Both sides know a key that is stored in the coordination tree. Each sends a
random number, and the HMAC-SHA256 (RFC 2104) of both numbers, the claimed id and the binding proves
the knowledge of the key without sending it. Both sides prove it, so a broker never fetches from a
stranger. The messages travel in SaslAuthenticate requests, with a mechanism of their own.

    broker                                       peer
    id, generation, number A              ->
                                          <-     generation, number B, HMAC("peer", …)
    HMAC("broker", …)                     ->
                                          <-     (empty)

Keys have generations, because brokers learn of a new one at different moments: the broker names the
newest that it knows, and the peer chooses the newest that both know.

The binding (RFC 5929, tls-unique) is a value of the handshake that both ends of a TLS connection
know, so a proof cannot be passed on to another connection, whose ends are other programs. RFC 9266
leaves tls-unique undefined for TLS 1.3, and its tls-exporter is not in Python 3.11. There OpenSSL
returns the client's Finished message, which depends on the whole handshake, with the certificate.
Without TLS the binding is empty: the exchange proves the identity when the connection is
established, and does not encrypt. On a network that an attacker can change, the listener for
brokers needs TLS.
"""

import hashlib
import hmac
import struct
from collections.abc import Mapping
from typing import Protocol

from ottla.base.errors import OttlaError

MECHANISM = "OTTLA-BROKER"
SECRET_BYTES = 32
NUMBER_BYTES = 16

_CLAIM = struct.Struct(">ii")  # broker id, generation
_GENERATION = struct.Struct(">i")
_PROOF_BYTES = hashlib.sha256().digest_size

KeysByGeneration = Mapping[int, bytes]
"""The keys that are valid, by their generations; not empty."""


class Secret(Protocol):
    """The secret of a cluster."""

    def valid_keys(self) -> KeysByGeneration:
        """Return the keys that are valid now."""
        ...


class ProofError(OttlaError):
    """The peer does not know the secret, or does not follow the exchange."""


class _Terms:
    """The claim and the numbers of an exchange, which the proofs of both sides contain."""

    def __init__(self, claim: bytes, first: bytes, second: bytes, binding: bytes) -> None:
        self._message = claim + first + second + struct.pack(">i", len(binding)) + binding

    def proof(self, key: bytes, side: bytes, generation: int) -> bytes:
        message = side + _GENERATION.pack(generation) + self._message
        return hmac.digest(key, message, "sha256")


class ProofOfBroker:
    """The side of the broker that connects; `number` is random and used once."""

    def __init__(
        self, keys: KeysByGeneration, broker_id: int, number: bytes, binding: bytes = b""
    ) -> None:
        self._keys = keys
        self._claim = _CLAIM.pack(broker_id, max(keys))
        self._number = number
        self._binding = binding

    def first(self) -> bytes:
        """Return the first message."""
        return self._claim + self._number

    def second(self, reply: bytes) -> bytes:
        """Return the second message; raises ProofError if the peer has not proven itself."""
        if len(reply) != _GENERATION.size + NUMBER_BYTES + _PROOF_BYTES:
            raise ProofError("the peer's proof has a wrong size")
        (generation,) = _GENERATION.unpack_from(reply)
        number, proof = reply[_GENERATION.size : -_PROOF_BYTES], reply[-_PROOF_BYTES:]
        key = self._keys.get(generation)
        if key is None:
            raise ProofError(f"the peer proves itself by generation {generation} of the secret")
        terms = _Terms(self._claim, self._number, number, self._binding)
        if not hmac.compare_digest(proof, terms.proof(key, b"peer", generation)):
            raise ProofError("the peer does not know the secret of this cluster")
        return terms.proof(key, b"broker", generation)


class ProofToPeer:
    """The side of the broker that is connected to; `broker_id` is the proven id, -1 before.

    `generation` is the key's, and `former` the identity that the peer has until then, and
    after a wrong proof.
    """

    def __init__(
        self, keys: KeysByGeneration, number: bytes, former: object = None, binding: bytes = b""
    ) -> None:
        self.broker_id = -1
        self.generation = -1
        self.former = former
        self._keys = keys
        self._number = number
        self._binding = binding
        # The id that the peer claims, and the proof that is expected.
        self._claim: tuple[int, bytes] | None = None

    def step(self, message: bytes) -> bytes:
        """Return the reply to a message; raises ProofError if the broker has not proven itself."""
        if self._claim is None:
            return self._begin(message)
        broker_id, expected = self._claim
        self._claim = None
        if not hmac.compare_digest(message, expected):
            raise ProofError(f"the proof of broker {broker_id} is wrong")
        self.broker_id = broker_id
        return b""

    def _begin(self, message: bytes) -> bytes:
        if self.broker_id >= 0 or len(message) != _CLAIM.size + NUMBER_BYTES:
            raise ProofError("the first message of a broker is its id, a generation and a number")
        broker_id, known = _CLAIM.unpack_from(message)
        if broker_id < 0:
            raise ProofError(f"{broker_id} is not a broker id")
        generation = min(known, max(self._keys))
        key = self._keys.get(generation)
        if key is None:
            raise ProofError(
                f"broker {broker_id} has generation {known} of the secret, which is over"
            )
        self.generation = generation
        terms = _Terms(message[: _CLAIM.size], message[_CLAIM.size :], self._number, self._binding)
        self._claim = broker_id, terms.proof(key, b"broker", generation)
        proof = terms.proof(key, b"peer", generation)
        return _GENERATION.pack(generation) + self._number + proof
