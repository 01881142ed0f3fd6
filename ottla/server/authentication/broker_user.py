"""The user of SCRAM as which brokers log in to each other: its credential in the tree.

Brokers must log in before a tool can reach them, so the first broker stores the credential if the
user does not have one. Each broker checks its password against it.
"""

import hmac
import logging

from ottla.base.errors import ConfigError
from ottla.base.rng import Rng
from ottla.cluster.options.security.broker_login import BrokerLogin
from ottla.cluster.zk.port import (
    BadVersion,
    Coordination,
    Create,
    NodeExists,
    NoNode,
    SetData,
)
from ottla.cluster.znodes import ConfigChangeNode, ConfigNode
from ottla.security.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    credential_of_password,
    parse_credential,
)

_log = logging.getLogger(__name__)


async def ensure(session: Coordination, login: BrokerLogin, rng: Rng) -> None:
    """Store the credential of the user if the user does not have one; ConfigError for another
    password.
    """
    await session.ensure(ConfigNode.type_path(ConfigNode.USERS))
    await session.ensure(ConfigChangeNode.PARENT)
    while True:
        try:
            await _ensure(session, login, rng)
        except (NodeExists, NoNode, BadVersion):
            # Another broker or a tool has written the node: look again.
            continue
        return


async def _ensure(session: Coordination, login: BrokerLogin, rng: Rng) -> None:
    entity = f"{ConfigNode.USERS}/{ConfigNode.sanitize(login.user)}"
    path = f"{ConfigNode.ROOT}/{entity}"
    stat = await session.exists(path)
    settings = {} if stat is None else ConfigNode.decode(path, (await session.get(path))[0])
    text = settings.get(login.mechanism)
    if text is not None:
        _check(login, text)
        return
    created = _credential(login, rng.random_bytes(SALT_BYTES), ITERATIONS_MIN)
    data = ConfigNode.encode({**settings, login.mechanism: created.text()})
    write = Create(path, data) if stat is None else SetData(path, data, stat.version)
    notice = Create(ConfigChangeNode.PREFIX, ConfigChangeNode.encode(entity), sequential=True)
    await session.multi([write, notice])
    _log.info("credential of the brokers' user stored user=%s", login.user)


def _check(login: BrokerLogin, text: str) -> None:
    try:
        known = parse_credential(text)
    except ValueError as error:
        raise ConfigError(
            f"the {login.mechanism} credential of the brokers' user {login.user} is damaged: {error}"
        ) from error
    own = _credential(login, known.salt, known.iterations)
    if not hmac.compare_digest(own.stored_key, known.stored_key):
        raise ConfigError(
            f"the password of the brokers' user {login.user} in {login.mechanism.lower()}"
            ".sasl.jaas.config is not that in the cluster: correct it, or set the cluster's by "
            f"`ottla security user {login.user} --mechanism {login.mechanism}`"
        )


def _credential(login: BrokerLogin, salt: bytes, iterations: int) -> ScramCredential:
    mechanism = ScramMechanism.of_name(login.mechanism)
    return credential_of_password(mechanism, login.password, salt, iterations)
