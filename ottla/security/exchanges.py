"""The server's part of SASL exchanges: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677). Pure.

An exchange takes the client's messages and returns the replies. It never says whether the user or
the password was wrong, and takes as long for an unknown user. Follows Kafka's PlainSaslServer and
ScramSaslServer.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from ottla.base.errors import OttlaError
from ottla.security.scram import ScramCredential, ScramMechanism

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS = (PLAIN, *(mechanism.mechanism_name for mechanism in ScramMechanism), OAUTHBEARER)
"""The mechanisms of clients."""

_TEXT_MAX = 4096
_CLIENT_FIRST = re.compile(r"(?P<header>[ny],(?:a=(?P<asked>[^,]*))?,)(?P<bare>n=(?P<user>[^,]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,.*)?))")  # fmt: skip
_CLIENT_FINAL = re.compile(
    r"(?P<bare>c=(?P<header>[^,]+),r=(?P<nonce>[^,]+)(?:,.*)?),p=(?P<proof>[^,]+)"
)
# The sentences of Kafka, for which its users search.
_INVALID_PLAIN = "Authentication failed: Invalid username or password"
_INVALID_SCRAM = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
)


class AuthenticationFailed(OttlaError):
    """The client does not know the password, or does not follow the exchange."""


class ClientExchange(Protocol):
    """One exchange with a client; `user` is empty until it is complete.

    `claimed` is the name that the client claims to have, as far as it is known. `expiry_ms` is when
    the client's credential expires, in milliseconds since the epoch; None if it does not.
    `is_by_token` is True if the credential is a delegation token.
    """

    user: str
    claimed: str
    expiry_ms: int | None
    is_by_token: bool
    # Why the latest step has refused the client, if its reply says so and the exchange continues.
    refusal: str

    def step(self, message: bytes) -> bytes:
        """Return the reply to a message; raises AuthenticationFailed, which ends the exchange."""
        ...

    def slow_part(self, message: bytes) -> Callable[[], None] | None:
        """Return the part of the next step that takes milliseconds, if it was not done yet.

        Any thread may do it before the step. Without it, the step does it.
        """
        ...


class ScramLogin(NamedTuple):
    """The credential for the name in a client's first message.

    A client that proves to know the password is `user`, which is empty for an unknown name. The
    credential of an unknown name is a mock. A delegation token expires at `expiry_ms`.
    """

    user: str
    credential: ScramCredential
    expiry_ms: int | None = None


Check = Callable[[str, str], bool]
"""Returns True for a user with this password; takes as long for an unknown user."""
SlowCheck = Callable[[str, str], Callable[[], bool]]
"""Returns the check of a user with this password as a function, which any thread may call."""


def check_of(passwords: Mapping[str, str]) -> Check:
    """Return the check of users with these passwords."""

    def is_right(user: str, password: str) -> bool:
        expected = passwords.get(user)
        is_same = hmac.compare_digest(password.encode(), (expected or "").encode())
        return expected is not None and is_same

    return is_right


class PlainExchange:
    """One message with user and password, which `check` checks; or `slow_check`, if it is given."""

    def __init__(self, check: Check, slow_check: SlowCheck | None = None) -> None:
        self.user = self.claimed = self.refusal = ""
        self.expiry_ms: int | None = None
        self.is_by_token = False
        self._check = check
        self._slow_check = slow_check
        # The message whose password has been checked already, and the result.
        self._checked: tuple[bytes, bool] | None = None

    def slow_part(self, message: bytes) -> Callable[[], None] | None:
        """Return the check of the password, if it takes milliseconds."""
        if self._slow_check is None or self._result(message) is not None:
            return None
        try:
            _, user, password = self._fields(message)
        except AuthenticationFailed:
            # So does the step.
            return None
        check = self._slow_check(user, password)

        def note() -> None:
            self._checked = message, check()

        return note

    def _result(self, message: bytes) -> bool | None:
        if self._checked is None or self._checked[0] != message:
            return None
        return self._checked[1]

    def _fields(self, message: bytes) -> list[str]:
        fields = _text(message).split("\0")
        if self.user or len(fields) != 3:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: expected 3 tokens")
        _, user, password = fields
        self.claimed = user
        if not user or not password:
            missing = "password" if user else "username"
            raise AuthenticationFailed(f"Authentication failed: {missing} not specified")
        return fields

    def step(self, message: bytes) -> bytes:
        """Check the password."""
        asked, user, password = self._fields(message)
        is_right = self._result(message)
        if is_right is None:
            is_right = self._check(user, password)
        if not is_right:
            raise AuthenticationFailed(_INVALID_PLAIN)
        if asked not in ("", user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user = user
        return b""


class ScramExchange:
    """Two messages, in which neither side sends the password.

    `nonce` is random text without a comma. `find_user` finds the login of a user, and `find_token`
    the login of a delegation token by its id; it is None if tokens are not issued. Unknown names
    must take as long, and have salts and iterations as known ones.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        find_user: Callable[[str], ScramLogin],
        *,
        nonce: str,
        find_token: Callable[[str], ScramLogin] | None = None,
    ) -> None:
        self.user = self.claimed = self.refusal = ""
        self.expiry_ms: int | None = None
        self.is_by_token = False
        self._mechanism = mechanism
        self._find_user = find_user
        self._find_token = find_token
        self._nonce = nonce
        self._login: ScramLogin | None = None
        # Of the first message: its header, and the signed texts of both sides.
        self._header = b""
        self._signed = ""
        self._is_over = False

    def slow_part(self, message: bytes) -> None:
        """Return None: the client hashes the password."""

    def step(self, message: bytes) -> bytes:
        """Return the challenge for the first message, the server's signature for the second."""
        if self._is_over:
            raise AuthenticationFailed("Authentication failed: the exchange is over")
        if not self._signed:
            return self._challenge(_text(message))
        self._is_over = True
        return self._verify(_text(message))

    def _challenge(self, message: str) -> bytes:
        found = _CLIENT_FIRST.fullmatch(message)
        if found is None:
            raise AuthenticationFailed("Authentication failed: Invalid SCRAM client first message")
        if re.search(r"=(?!2C|3D)", found["user"]):
            raise AuthenticationFailed("Authentication failed: Invalid user name")
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        if found["asked"] not in (None, "", found["user"]):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.claimed, self._header = user, found["header"].encode()
        self.is_by_token = _is_token(found["extensions"])
        find = self._find_token if self.is_by_token else self._find_user
        if find is None:
            raise AuthenticationFailed("Authentication failed: delegation tokens are not issued")
        self._login = find(user)
        # The owner of a token.
        self.claimed = self._login.user or user
        self.expiry_ms = self._login.expiry_ms
        self._nonce = found["nonce"] + self._nonce
        salt, iterations = self._login.credential.salt, self._login.credential.iterations
        reply = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._signed = f"{found['bare']},{reply}"
        return reply.encode()

    def _verify(self, message: str) -> bytes:
        found = _CLIENT_FINAL.fullmatch(message)
        if found is None:
            raise AuthenticationFailed("Authentication failed: Invalid SCRAM client final message")
        # RFC 5802 demands both checks: the nonce of this very exchange, and the same header. As
        # Kafka 3.8.1, accept the client's nonce twice: librdkafka before 2.6.1 repeats it.
        is_own = found["nonce"].endswith(self._nonce)
        if not is_own or _decoded(found["header"]) != self._header:
            raise AuthenticationFailed(
                "Authentication failed: Invalid client nonce in the final client message"
            )
        assert self._login is not None, "the first message came before"
        digest, known = self._mechanism.digest, self._login.credential
        signed = f"{self._signed},{found['bare']}".encode()
        signature = hmac.digest(known.stored_key, signed, digest)
        proof = _decoded(found["proof"])
        invalid = _INVALID_SCRAM.format(self._mechanism.mechanism_name)
        if len(proof) != len(signature):
            raise AuthenticationFailed(invalid)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(digest, client_key).digest()
        is_right = hmac.compare_digest(stored_key, known.stored_key)
        if not (self._login.user and is_right):
            raise AuthenticationFailed(invalid)
        self.user = self._login.user
        return b"v=" + base64.b64encode(hmac.digest(known.server_key, signed, digest))


def _is_token(extensions: str) -> bool:
    pairs = dict(pair.partition("=")[::2] for pair in extensions.split(","))
    return pairs.get("tokenauth", "").lower() == "true"


def _text(message: bytes) -> str:
    if len(message) > _TEXT_MAX:
        raise AuthenticationFailed("Authentication failed: the message is too long")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("Authentication failed: the message is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationFailed("Authentication failed: the message is not base64") from None
