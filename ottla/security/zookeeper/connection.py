"""A connection of kazoo that logs in with DIGEST-MD5, for brokers, tools and the console.

kazoo needs the library pure-sasl for that; decision 0010 says why it is not used. The module of
brokers and tools that opens sessions is `cluster.zk.live`.
"""

import itertools
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL

from ottla.base.rng import SystemRng
from ottla.security.zookeeper.digest_md5 import AuthenticationFailed, exchange
from ottla.security.zookeeper.login import Login

_NONCE_BYTES = 16


class LoginConnection(ConnectionHandler):  # type: ignore[misc]
    """A connection that authenticates its user before the first request."""

    def __init__(self, client: KazooClient, login: Login, logger: Any) -> None:
        options = {"mechanism": "DIGEST-MD5"}
        retry = client._conn_retry.copy()
        super().__init__(client, retry, logger=logger, sasl_options=options)
        self.login = login
        # kazoo forgets the reason when it stops.
        self.is_rejected = False

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            self._log_in(timeout)
        except exceptions.AuthFailedError:
            self.is_rejected = True
            raise

    def _log_in(self, timeout: float) -> None:
        nonce = SystemRng().random_bytes(_NONCE_BYTES).hex()
        steps = exchange(self.login.username, self.login.password, nonce)
        message = next(steps)
        for number in itertools.count(1):
            self._submit(SASL(message), timeout, number)
            header, buffer, offset = self._read_header(timeout)
            if header.err:
                raise exceptions.AuthFailedError(f"error {header.err}")
            challenge, _ = SASL.deserialize(buffer, offset)
            try:
                # A server that does not authenticate users returns no bytes.
                message = steps.send(challenge or b"")
            except StopIteration:
                return
            except AuthenticationFailed as error:
                raise exceptions.AuthFailedError(str(error)) from error


def log_in(client: KazooClient, login: Login, logger: Any) -> LoginConnection:
    """Let a client that is not connected yet log in; return its connection."""
    connection = LoginConnection(client, login, logger)
    client._connection = connection
    return connection
