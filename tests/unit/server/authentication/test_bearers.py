"""The checks of tokens of OAUTHBEARER that each listener has."""

import base64
import json
import os
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.tasks import Tasks
from ottla.cluster.options.security_options import BearerOptions, ListenerSecurity
from ottla.server.authentication.bearers import Bearers
from ottla.testing.sim.files import SimFileSystem

KEY = ECKey.generate_key("P-256")
CLOCK = RealClock()


def message(token: str) -> bytes:
    """Return the first message of a client."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def bearers(files: FileSystem, **options: BearerOptions) -> Bearers:
    """Return the checks of listeners."""
    rows = {name: ListenerSecurity(bearer=row) for name, row in options.items()}
    return Bearers(rows | {"OTHER": ListenerSecurity()}, files, CLOCK, Tasks())


def test_each_listener_has_its_own_check() -> None:
    """A token without a signature does not pass a listener that has keys."""
    files = SimFileSystem()
    files.make_directories("/etc")
    files.replace("/etc/keys", json.dumps(KeySet([KEY]).as_dict(private=False)).encode())
    checks = bearers(files, A=BearerOptions({}), B=BearerOptions(keys_path="/etc/keys", principal_claim="sub"))  # fmt: skip
    now = CLOCK.time_ms() // 1000
    claims = {"sub": "ann", "iat": now, "exp": now + 60}
    signed = jwt.encode({"alg": "ES256"}, claims, KEY, algorithms=["ES256"])
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


def test_keys_are_read_again_after_a_change(tmp_path: Path) -> None:
    """A key that was removed counts no more; a damaged file changes nothing."""
    path = tmp_path / "keys"
    other = ECKey.generate_key("P-256")
    now = CLOCK.time_ms() // 1000
    claims = {"sub": "ann", "iat": now, "exp": now + 60}
    first, second = (
        jwt.encode({"alg": "ES256"}, claims, key, algorithms=["ES256"]) for key in (KEY, other)
    )

    def write(text: str, seconds: int) -> None:
        path.write_text(text)
        os.utime(path, (seconds, seconds))

    def users() -> list[str]:
        exchanges = [checks.begin("A") for _ in range(2)]
        for exchange, token in zip(exchanges, (first, second), strict=True):
            exchange.step(message(token))
        return [exchange.user for exchange in exchanges]

    write(json.dumps(KeySet([KEY]).as_dict(private=False)), 1)
    options = BearerOptions(keys_path=str(path), principal_claim="sub")
    checks = bearers(RealFileSystem(), A=options)
    assert users() == ["ann", ""]
    write(json.dumps(KeySet([other]).as_dict(private=False)), 2)
    assert users() == ["", "ann"]
    write("damaged", 3)
    assert users() == ["", "ann"]
    path.unlink()
    assert users() == ["", "ann"]
