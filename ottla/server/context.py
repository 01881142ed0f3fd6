"""The dependencies of request handlers: the broker, and the context of the request."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.net.connection import Connection
from ottla.security.broker_proof import Secret
from ottla.server.authentication.identity import is_broker, is_this_broker
from ottla.server.current import Current

if TYPE_CHECKING:
    from ottla.base.slices import Lane
    from ottla.controller.loop import Controller
    from ottla.controller.planning.notices import BrokerPort
    from ottla.coordinators.groups.service import GroupCoordinator
    from ottla.coordinators.producer_ids import ProducerIds
    from ottla.coordinators.txn.service import TransactionCoordinator
    from ottla.replication.isr_updates import IsrUpdates
    from ottla.replication.ports import IsrChanges
    from ottla.replication.replicas import Replicas
    from ottla.server.audit.log import AuditLog
    from ottla.server.authentication.logins import Logins
    from ottla.server.authorization.access import Access
    from ottla.server.config.features import Features
    from ottla.server.config.store import ConfigStore
    from ottla.server.fetch.sessions import FetchSessions
    from ottla.server.metadata_parts import MetadataParts
    from ottla.server.produce.admission import Admission
    from ottla.server.produce.heavy_batches import HeavyBatches
    from ottla.server.produce.markers import ReplicaMarkers
    from ottla.server.quotas.clients import ClientQuotas, RequestUsage
    from ottla.server.telemetry.clients import ClientMetrics

# The rule in the audit log for requests that only brokers may send.
_NO_PROOF = "the sender has not proven to be the broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The running broker, as request handlers see it; `server.composition` constructs it."""

    node_id: int
    cluster_id: str
    # Known to all brokers of the cluster; None if they do not prove their ids by it.
    secret: Secret | None
    # False if peers are brokers without a proof.
    brokers_prove: bool
    # The names of the listeners on which other brokers prove their identity.
    broker_listeners: frozenset[str]
    clock: Clock
    rng: Rng
    tasks: Tasks
    current: Current
    replicas: "Replicas"
    groups: "GroupCoordinator"
    transactions: "TransactionCoordinator"
    markers: "ReplicaMarkers"
    admission: "Admission"
    producer_ids: "ProducerIds"
    controller: "Controller"
    # Receives the controller's notices.
    notices: "BrokerPort"
    metadata_parts: "MetadataParts"
    # Held while a notice of another broker's controller is applied: a repeated notice must not
    # overtake the first.
    notice_order: asyncio.Lock
    configs: "ConfigStore"
    features: "Features"
    fetch_sessions: "FetchSessions"
    # Of followers; they are never evicted by consumers.
    follower_sessions: "FetchSessions"
    isr_updates: "IsrUpdates"
    isr_changes: "IsrChanges"
    heavy_batches: "HeavyBatches"
    quotas: "ClientQuotas"
    logins: "Logins"
    client_metrics: "ClientMetrics"
    # Where work that would stop the event loop waits for its turns.
    lane: "Lane"
    audit: "AuditLog"
    # The broker's own addresses by listener name; empty if advertised.listeners is not set.
    advertised: Mapping[str, tuple[str, int]]

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now; code that runs for each request reads `current`."""
        return self.current.image

    @property
    def options(self) -> Snapshot:
        """The broker's options as of now; code that runs for each request reads `current`."""
        return self.current.options


class RequestContext:
    """The context of one request; `connection` has both addresses and the listener."""

    __slots__ = (
        "access",
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "has_errors",
        "keeps_order",
        "started_at",
        "usage",
    )

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        # The rights of the sender; None without an authorizer.
        self.access: Access | None = None
        # True if the next requests of the connection must wait for this response.
        self.keeps_order = False
        # When the request arrived, by the monotonic clock; 0 if this is not measured.
        self.started_at = 0.0
        # Set by the handlers of responses with records: True if the response has errors.
        self.has_errors = False
        # The request's use of its client's quotas; None if the client has no quotas.
        self.usage: RequestUsage | None = None

    @property
    def is_from_any_broker(self) -> bool:
        """True if the sender has proven to be a broker of the cluster, or brokers prove nothing."""
        return self._reported(not self.broker.brokers_prove or is_broker(self.connection))

    def _reported(self, is_proven: bool) -> bool:
        """Return if the sender is a broker; write to the audit log that it is not."""
        if not is_proven:
            self.broker.audit.refused(self, _NO_PROOF)
        return is_proven

    def is_from_broker(self, broker_id: int) -> bool:
        """Return True if the sender has proven to be this broker of the cluster."""
        if self.broker.secret is not None:
            return self._reported(is_this_broker(self.connection, broker_id))
        # Brokers prove nothing, or not which one they are: the id must be a registered one.
        is_registered = broker_id != self.broker.node_id and broker_id in self.broker.image.brokers
        return self._reported(is_registered and self._may_be_broker(broker_id))

    def speaks_for(self, broker_id: int) -> bool:
        """Return True if the sender has proven to be this broker, or brokers prove nothing.

        Unlike `is_from_broker` it accepts a broker id that is not registered here yet, because the
        first notice of a controller names the brokers.
        """
        return self._reported(broker_id >= 0 and self._may_be_broker(broker_id))

    def _may_be_broker(self, broker_id: int) -> bool:
        return not self.broker.brokers_prove or is_this_broker(self.connection, broker_id)

    def address_of(self, broker: BrokerImage) -> tuple[str, int] | None:
        """Return the address at which this client reaches `broker`; for this one, its own
        connection's.

        `advertised.listeners` overrides that. None if the other broker does not have the listener.
        """
        listener = self.connection.listener_name
        if broker.id == self.broker.node_id:
            advertised = self.broker.advertised.get(listener)
            return advertised or self.connection.local_address
        endpoint = broker.endpoint(listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)
