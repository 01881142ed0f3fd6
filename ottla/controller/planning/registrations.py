"""Which process may register under a broker's id. Pure.

As in Apache Kafka (KafkaZkClient.registerBroker), a live session keeps the id that it has
registered, whatever the addresses are. A broker that restarts before its former session has expired
replaces only a registration of its own: it holds the lock of the log directories in which that
registration is recorded, so the process that made it has ended.
"""

from collections.abc import Container
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.base.errors import ConfigError
from ottla.cluster.image import BrokerImage


class Incarnation(NamedTuple):
    """One registration of a broker: its session, and its time in milliseconds."""

    session_id: int
    registered_ms: int


class Verdict(Enum):
    """The relation of a process to the registration of its id."""

    OWN = "own"
    FORMER = "former"
    FOREIGN = "foreign"


def verdict(holder: Incarnation, session_id: int, recorded: Container[tuple[int, int]]) -> Verdict:
    """Compare the holder of an id with a session, and with its log directories' record."""
    if holder.session_id == session_id:
        return Verdict.OWN
    return Verdict.FORMER if holder in recorded else Verdict.FOREIGN


class Registrations(Protocol):
    """The record of the registrations that processes with these log directories have made."""

    def recorded(self) -> Container[tuple[int, int]]:
        """Return the latest registrations, also of this process."""
        ...

    async def record(self, incarnation: Incarnation) -> None:
        """Record a registration that this process is about to make."""
        ...


class VolatileRegistrations:
    """A record in memory, of a broker without log directories."""

    def __init__(self) -> None:
        self._recorded: list[Incarnation] = []

    def recorded(self) -> Container[tuple[int, int]]:
        """Return the registrations of this process."""
        return self._recorded

    async def record(self, incarnation: Incarnation) -> None:
        """Record a registration."""
        self._recorded.append(incarnation)


class IdInUse(ConfigError):
    """The id of the broker `own` belongs to another process, which has registered as `holder`."""

    def __init__(self, own: BrokerImage, holder: BrokerImage) -> None:
        super().__init__(
            f"node.id {own.id} is registered already: the process at {_addresses(holder)} has it "
            f"since {_time(holder)}, and its session is alive. The broker at {_addresses(own)} "
            f"cannot join; stop that process, or give this broker a node.id, log.dirs and "
            f"advertised.listeners of its own"
        )
        self.own = own
        self.holder = holder


def deposed(own: BrokerImage, holder: BrokerImage) -> ConfigError:
    """Return the error of a broker that another process has replaced."""
    return ConfigError(
        f"node.id {own.id} was registered by another process, at {_addresses(holder)}, at "
        f"{_time(holder)}: the broker at {_addresses(own)} no longer belongs to the cluster and "
        f"stops. Give one of the two a node.id, log.dirs and advertised.listeners of its own"
    )


def _addresses(broker: BrokerImage) -> str:
    return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in broker.every_endpoint())


def _time(broker: BrokerImage) -> str:
    moment = datetime.fromtimestamp(broker.registered_ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
