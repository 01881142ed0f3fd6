"""A simulated broker with users, an authorizer and an audit log in a file."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.server.node import Node
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.world import Machine, World
from ottla.wire.api_keys import api_of
from ottla.wire.fields import Message
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

FILE = "/log/audit.log"
CLIENT_ID = "tool\n{}"
PASSWORDS = {"root": "r", "ann": "a"}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://0.0.0.0:9092",
    "allow.insecure.listeners": "true",
    "advertised.listeners": "SASL_PLAINTEXT://broker:9092",
    "log.dirs": "/data/one,/data/two",
    "offsets.topic.num.partitions": "1",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_LOGIN} {_USERS};",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root",
    "delegation.token.secret.key": "secret",
    "audit.log.file": FILE,
}


class AuditedBroker:
    """The broker, and connections of its users."""

    def __init__(self, world: World, settings: dict[str, str]) -> None:
        self.world = world
        self.machine: Machine = world.machine("broker")
        self._settings = settings
        self.node: Node | None = None

    async def start(self) -> None:
        """Start the broker; returns when clients are served."""

        async def live() -> None:
            machine = self.machine
            self.node = Node(
                self._settings,
                clock=machine.clock,
                rng=machine.rng(),
                files=machine.files,
                net=machine.net,
            )
            await self.node.start()

        await self.machine.start(live)

    async def stop(self) -> None:
        """Stop the broker, which writes the rest of the file."""
        assert self.node is not None
        await self.machine.run(self.node.stop)

    async def connect(self) -> SimConnection:
        """Return a connection that has not logged in."""
        return await connect(self.world.machine("client").net, "broker", 9092, CLIENT_ID)

    async def log_in(self, user: str, password: str | None = None) -> SimConnection:
        """Return a connection of a user; ConnectionError with a wrong password."""
        connection = await self.connect()
        handshake = SaslHandshakeRequest(mechanism="PLAIN")
        await connection.request(handshake, 1, SaslHandshakeResponse)
        message = f"\0{user}\0{PASSWORDS.get(user) if password is None else password}".encode()
        response = await connection.request(
            SaslAuthenticateRequest(auth_bytes=message), 2, SaslAuthenticateResponse
        )
        if response.error_code:
            raise ConnectionRefusedError(ErrorCode(response.error_code).name)
        return connection

    async def allow(self, root: SimConnection, operation: int, topic: str) -> None:
        """Allow ann an operation on a topic."""
        row = AclCreation(
            resource_type=2,
            resource_name=topic,
            principal="User:ann",
            host="*",
            operation=operation,
            permission_type=3,
        )
        await ask(root, CreateAclsRequest(creations=[row]), 3)

    def lines(self) -> list[dict[str, Any]]:
        """Return the records in the file."""
        content = self.machine.files.read(FILE).decode("ascii")
        assert not content or content.endswith("\n")
        return [json.loads(line) for line in content.splitlines()]


async def ask(connection: SimConnection, request: Message, version: int) -> Any:
    """Send a request and return its response."""
    return await connection.request(request, version, api_of(request).response)


def run(
    scenario: Callable[[AuditedBroker], Awaitable[None]], **settings: str
) -> list[dict[str, Any]]:
    """Run `scenario(broker)`, stop the broker, and return the records of its audit log.

    The dots of settings are written as underscores.
    """
    with World(1) as world:
        own = {name.replace("_", "."): text for name, text in settings.items()}
        broker = AuditedBroker(world, SETTINGS | own)

        async def whole() -> list[dict[str, Any]]:
            await broker.start()
            await scenario(broker)
            await broker.stop()
            return broker.lines()

        return world.run(whole())
