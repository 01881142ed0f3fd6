"""The users of SCRAM as this broker knows them: current, and found as fast as unknown ones.

Credentials are parsed when they change and not when a client names them, so that the response time
does not depend on whether the user exists.
"""

import logging
from collections.abc import Mapping

from ottla.base.rng import Rng
from ottla.cluster.secret_znodes import LoginSecretNode
from ottla.cluster.zk.port import Coordination, NodeExists, NoNode
from ottla.cluster.znodes import ConfigNode
from ottla.security.exchanges import ScramLogin
from ottla.security.mock_credentials import MockCredentials
from ottla.security.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    parse_credential,
)

_log = logging.getLogger(__name__)

_SECRET_BYTES = 32


class ScramUsers:
    """Lives on the broker's loop; `settings_changed` keeps it current from `start` on."""

    def __init__(self) -> None:
        # By mechanism and path below /config/users.
        self._credentials: dict[tuple[ScramMechanism, str], ScramCredential] = {}
        self._mocks: dict[ScramMechanism, MockCredentials] = {}

    async def start(self, session: Coordination, rng: Rng) -> None:
        """Read the secret of the cluster, before the settings of users are read."""
        self.begin(await _ensure_secret(session, rng))

    def begin(self, secret: bytes) -> None:
        """Derive the responses to unknown users from a secret."""
        self._mocks = {
            mechanism: MockCredentials(secret, mechanism) for mechanism in ScramMechanism
        }

    def settings_changed(self, entity_type: str, path: str, settings: Mapping[str, str]) -> None:
        """Apply an entity's settings from the tree; only users' settings are considered."""
        if entity_type != ConfigNode.USERS or path == ConfigNode.DEFAULT or "/" in path:
            return
        for mechanism, mocks in self._mocks.items():
            former = self._credentials.pop((mechanism, path), None)
            if former is not None:
                mocks.remove(former)
            text = settings.get(mechanism.mechanism_name)
            credential = None if text is None else _usable(path, mechanism, text)
            if credential is not None:
                mocks.add(credential)
                self._credentials[mechanism, path] = credential

    def find(self, mechanism: ScramMechanism, user: str) -> ScramLogin:
        """Return the login of a user, with a mock credential if the user is unknown."""
        # For known users, too: it takes time.
        mock = self._mocks[mechanism].credential(user)
        known = self._credentials.get((mechanism, ConfigNode.sanitize(user)))
        return ScramLogin("", mock) if known is None else ScramLogin(user, known)


def _usable(path: str, mechanism: ScramMechanism, text: str) -> ScramCredential | None:
    """Return a stored credential; None if it is damaged or, as in Kafka, too weak."""
    try:
        credential = parse_credential(text)
    except ValueError as error:
        reason = str(error)
    else:
        if credential.iterations >= ITERATIONS_MIN:
            return credential
        reason = f"{credential.iterations} iterations are fewer than {ITERATIONS_MIN}"
    name = mechanism.mechanism_name
    _log.error("no login with credential user=%s mechanism=%s error=%s", path, name, reason)
    return None


async def _ensure_secret(session: Coordination, rng: Rng) -> bytes:
    """Return the secret of the cluster; the first broker that needs it generates it."""
    path = LoginSecretNode.PATH
    while True:
        try:
            return LoginSecretNode.decode((await session.get(path))[0])
        except NoNode:
            await session.ensure(path.rpartition("/")[0])
        secret = rng.random_bytes(_SECRET_BYTES)
        try:
            await session.create(path, LoginSecretNode.encode(secret))
        except NodeExists:
            # Another broker created it first: its secret is the cluster's.
            continue
        return secret
