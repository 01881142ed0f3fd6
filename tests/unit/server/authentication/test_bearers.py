"""The checks of tokens of OAUTHBEARER that each listener has."""

import base64
import json

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.cluster.options.security_options import BearerOptions, ListenerSecurity
from ottla.server.authentication.bearers import Bearers
from ottla.testing.sim.files import SimFileSystem

KEY = RSAKey.generate_key(2048)
CLOCK = RealClock()


def message(token: str) -> bytes:
    """Return the first message of a client."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def bearers(files: FileSystem, **options: BearerOptions) -> Bearers:
    """Return the checks of listeners."""
    rows = {name: ListenerSecurity(bearer=row) for name, row in options.items()}
    return Bearers(rows | {"OTHER": ListenerSecurity()}, files, CLOCK)


def test_each_listener_has_its_own_check() -> None:
    """A token without a signature does not pass a listener that has keys."""
    files = SimFileSystem()
    files.make_directories("/etc")
    files.replace("/etc/keys", json.dumps(KeySet([KEY]).as_dict(private=False)).encode())
    checks = bearers(files, A=BearerOptions({}), B=BearerOptions(keys_path="/etc/keys", principal_claim="sub"))  # fmt: skip
    now = CLOCK.time_ms() // 1000
    claims = {"sub": "ann", "iat": now, "exp": now + 60}
    signed = jwt.encode({"alg": "RS256"}, claims, KEY, algorithms=["RS256"])
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims))  # fmt: skip
    unsecured = ".".join((*parts, ""))
    for listener, token, user in (
        ("A", unsecured, "ann"),
        ("A", signed, ""),
        ("B", unsecured, ""),
        ("B", signed, "ann"),
    ):
        exchange = checks.begin(listener)
        exchange.step(message(token))
        assert exchange.user == user


@pytest.mark.parametrize("data", [None, b"{}"])
def test_keys_that_cannot_be_read_are_an_error(data: bytes | None) -> None:
    """The sentence names the listener and the file."""
    files = SimFileSystem()
    files.make_directories("/etc")
    if data is not None:
        files.replace("/etc/keys", data)
    with pytest.raises(ConfigError, match="The listener A cannot read the keys of /etc/keys: "):
        bearers(files, A=BearerOptions(keys_path="/etc/keys"))
