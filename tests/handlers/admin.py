"""A broker for the handlers of topics and configuration: real controller and config store, no logs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from ottla.cluster.options import option_tables
from ottla.server.config.store import ConfigStore
from ottla.server.context import Broker, RequestContext
from ottla.server.current import Current
from ottla.server.quotas.clients import RequestUsage, client_quotas
from tests.handlers.audited import audit_log
from tests.unit.controller.conftest import World


class AdminBroker:
    """Broker 1, the controller of a cluster of one; `image` is the metadata it has received."""

    def __init__(self, world: World, configs: ConfigStore) -> None:
        self.world = world
        self.configs = configs
        self.node_id = 1
        # A broker id that its sender has not proven.
        self.stranger = -1
        self.clock = world.clock
        self.audit = audit_log(clock=world.clock, tasks=world.tasks)
        self.quotas = client_quotas(configs.broker, world.clock)
        configs.on_entity.append(self.quotas.settings_changed)

    @property
    def image(self) -> Any:
        """Return the metadata that the controller has sent to the broker."""
        return self.world.port(1).image

    @property
    def options(self) -> Any:
        """Return the broker's current options."""
        return self.configs.broker

    @property
    def current(self) -> Current:
        """Return the values that change; no connection to the controller was ever lost."""
        return Current(image=self.image, options=self.options)

    @property
    def controller(self) -> Any:
        """Return the controller of this broker."""
        return self.world.controllers[1]

    def context(self, api_version: int, usage: RequestUsage | None = None) -> RequestContext:
        """Return the context of a request in this version, from a client without quotas."""
        context = SimpleNamespace(
            broker=cast(Broker, self),
            connection=SimpleNamespace(
                identity=None, peer_address=("10.0.0.1", 1), listener_name="PLAINTEXT"
            ),
            api_key=3,
            api_version=api_version,
            client_id="client",
            access=None,
            usage=usage,
            speaks_for=lambda broker_id: broker_id != self.stranger,
        )
        return cast(RequestContext, context)


@asynccontextmanager
async def admin_broker(**settings: str) -> AsyncIterator[AdminBroker]:
    """Run a broker with settings written as keywords, dots as underscores."""
    world = World()
    world.settings = {name.replace("_", "."): text for name, text in settings.items()}
    configs = ConfigStore(
        option_tables.parse_broker_settings(world.settings).snapshot, 1, world.tasks
    )
    await configs.start(world.tree.session())
    world.options = lambda: configs.broker  # type: ignore[method-assign]
    await world.start()
    try:
        yield AdminBroker(world, configs)
    finally:
        await world.close()
