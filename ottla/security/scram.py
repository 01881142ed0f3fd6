"""SCRAM credentials as a cluster keeps them: salted keys instead of passwords (RFC 5802). Pure.

The text of a credential is that of Apache Kafka's ScramCredentialUtils, so that both can use the
same coordination tree (KIP-84, KIP-554).
"""

import base64
import hashlib
import hmac
from enum import Enum
from typing import NamedTuple

ITERATIONS_MIN = 4096
SALT_BYTES = 16
"""The size of the salts that brokers choose."""
ITERATIONS_MAX = 16_384
"""The largest number that Apache Kafka accepts."""


class ScramMechanism(Enum):
    """A mechanism with its number in the protocol and its hash function."""

    SCRAM_SHA_256 = (1, "sha256")
    SCRAM_SHA_512 = (2, "sha512")

    @property
    def mechanism_name(self) -> str:
        """The name in SASL, such as "SCRAM-SHA-256"."""
        return self.name.replace("_", "-")

    @property
    def code(self) -> int:
        """The number in the protocol."""
        return self.value[0]

    @property
    def digest(self) -> str:
        """The name of the hash function in `hashlib`."""
        return self.value[1]

    @classmethod
    def of_code(cls, code: int) -> "ScramMechanism | None":
        """Return the mechanism with a number of the protocol; None if it is not known."""
        return next((mechanism for mechanism in cls if mechanism.code == code), None)


class ScramCredential(NamedTuple):
    """The values by which a server checks a password that it does not know."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def text(self) -> str:
        """Return the credential as it is written in the tree."""
        fields = (self.salt, self.stored_key, self.server_key)
        salt, stored_key, server_key = (base64.b64encode(field).decode() for field in fields)
        keys = f"stored_key={stored_key},server_key={server_key}"
        return f"salt={salt},{keys},iterations={self.iterations}"


def credential_of(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """Return the credential for a password that the client has salted and hashed."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    return ScramCredential(
        salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


def parse_credential(text: str) -> ScramCredential:
    """Return a credential from its text in the tree; raises ValueError if it is not one."""
    try:
        fields = dict(field.split("=", 1) for field in text.split(","))
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True)
            for name in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored_key, server_key, int(fields["iterations"]))
    except (KeyError, ValueError) as error:
        # The error names a field or a character, not a key.
        raise ValueError(f"not a SCRAM credential: {error}") from None
