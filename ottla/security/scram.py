"""SCRAM (RFC 5802): credentials as a cluster keeps them, and the client's part of exchanges. Pure.

A cluster keeps salted keys instead of passwords. The text of a credential has the format of Apache
Kafka's ScramCredentialUtils, so that both can use the same coordination tree (KIP-84, KIP-554).
`exchanges` has the server's part.
"""

import base64
import hashlib
import hmac
from collections.abc import Generator, Mapping
from enum import Enum
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.options import is_digits

ITERATIONS_MIN = 4096
"""RFC 7677: fewer make the password easy to guess."""
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
    def of_name(cls, name: str) -> "ScramMechanism":
        """Return the mechanism with a name in SASL; KeyError if it is not one."""
        return cls[name.replace("-", "_")]

    @classmethod
    def of_code(cls, code: int) -> "ScramMechanism | None":
        """Return the mechanism with a number of the protocol; None if it is not known."""
        return next((mechanism for mechanism in cls if mechanism.code == code), None)


USERS_MECHANISM = ScramMechanism.SCRAM_SHA_512
"""The hash of the users of PLAIN in files."""


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


def credential_of_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential for a password; this takes milliseconds."""
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    return credential_of(mechanism, salt, salted, iterations)


def users_of(text: str) -> dict[str, ScramCredential]:
    """Return the users of a file with a user and a credential in each line; raises ValueError.

    Empty lines and those that begin with # are comments. The credentials are of USERS_MECHANISM.
    """
    users: dict[str, ScramCredential] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, credential = line.rpartition(":")
        if not colon or not name or name in users:
            raise ValueError(f"line {number} does not have another user and a credential")
        try:
            users[name] = parse_credential(credential.strip())
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not ITERATIONS_MIN <= users[name].iterations <= ITERATIONS_MAX:
            raise ValueError(
                f"line {number} does not have {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations"
            )
    return users


def users_text(users: Mapping[str, ScramCredential]) -> str:
    """Return the content of a file of users; ValueError for a name that a line cannot have."""
    for name in users:
        if not name or name.startswith("#") or len(f"{name}.".splitlines()) != 1:
            raise ValueError(f"{name!r} cannot be the name of a user in a file")
    return "".join(f"{name}:{credential.text()}\n" for name, credential in users.items())


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


class ServerNotProven(OttlaError):
    """The server does not know the password, or does not follow the exchange."""


class Login(NamedTuple):
    """A user, or a delegation token, with the password; `digest` is a hash function of hashlib."""

    digest: str
    user: str
    password: str
    is_token: bool = False


def messages_of(login: Login, nonce: str, iterations_max: int) -> Generator[bytes, bytes, None]:
    """Yield the client's messages, and be sent the server's; raises ServerNotProven.

    `nonce` is random text without a comma.
    """
    digest = login.digest
    user = login.user.replace("=", "=3D").replace(",", "=2C")
    begin = f"n={user},r={nonce}" + (",tokenauth=true" if login.is_token else "")
    server_first = (yield f"n,,{begin}".encode()).decode()
    fields = _fields(server_first)
    iterations = int(fields["i"]) if is_digits(fields.get("i", ""), 9) else 0
    is_usable = ITERATIONS_MIN <= iterations <= iterations_max
    if not fields.get("r", "").startswith(nonce) or not is_usable:
        raise ServerNotProven("the server's first message is wrong")
    salt = base64.b64decode(fields.get("s", ""))
    salted = hashlib.pbkdf2_hmac(digest, login.password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    final = f"c=biws,r={fields['r']}"
    signed = f"{begin},{server_first},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = (yield f"{final},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    verifier = base64.b64decode(_fields(server_final).get("v", ""))
    if not hmac.compare_digest(verifier, expected):
        raise ServerNotProven("the server does not know the password")


def _fields(message: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in message.split(","))
