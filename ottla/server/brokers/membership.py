"""This broker as a member of its cluster: registration, notices of the controller, controlled shutdown.

Assembles the controller with the ways to other brokers. `join` is the last step of a start, and
`leave` the first one of a stop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.zk.port import Coordination
from ottla.controller import state
from ottla.controller.loop import Controller
from ottla.controller.planning.notices import BrokerPort, MetadataUpdate
from ottla.controller.term_context import Dependencies
from ottla.net.port import Net
from ottla.server.brokers import leaving
from ottla.server.brokers.addresses import identifies_process, inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.controller_link import ControllerLink
from ottla.server.brokers.isr_proposals import IsrProposals
from ottla.server.brokers.process_watch import Registration
from ottla.server.brokers.remote import RemoteBroker
from ottla.server.brokers.replication import isr_updates_of
from ottla.server.brokers.topics_elsewhere import TopicsElsewhere
from ottla.server.context import Broker
from ottla.server.local_broker import LocalBroker
from ottla.server.metadata_parts import MetadataParts

_log = logging.getLogger(__name__)

# How long a start waits for the controller's first notice; without it clients would see no topics.
INFORMED_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The ports and options of the broker; `connect` starts a session in place of a lost one."""

    clock: Clock
    rng: Rng
    net: Net
    tasks: Tasks
    options: Snapshot
    channels: Channels
    connect: Callable[[], Awaitable[Coordination]]


class Membership:
    """The broker's place in the cluster, from its registration until it leaves."""

    def __init__(self, broker: Broker, environment: Environment) -> None:
        self._broker = broker
        self._environment = environment
        # The registrations of other brokers that this one has connected to.
        self._reached: set[Registration] = set()
        self._link = ControllerLink(environment.channels, broker)
        self._notices = LocalBroker(
            broker,
            lambda: broker.controller.broker_epoch,
            self._image_changed,
            lambda: broker.controller.newest_epoch(),
        )
        self._topics_elsewhere = TopicsElsewhere(self._link, self._notices)

    async def join(self, session: Coordination, endpoints: Sequence[Endpoint]) -> None:
        """Register at these endpoints and become a candidate for the controller's role.

        Raises ConfigError if the id or one of the addresses belongs to another broker.
        """
        broker, environment = self._broker, self._environment
        registration = self._registration(endpoints)
        await state.refuse_shared_addresses(session, registration)
        seconds = environment.options.integer("zookeeper.session.timeout.ms") / 1000
        if not identifies_process(registration, environment.options):
            await state.wait_for_former_session(session, registration, seconds)
        dependencies = Dependencies(
            clock=environment.clock,
            rng=environment.rng,
            tasks=environment.tasks,
            options=lambda: broker.options,
            topic_options=broker.configs.topic,
            port_of=self._port_of,
            connect=environment.connect,
            create_elsewhere=self._topics_elsewhere.ensure,
            local_image=lambda: broker.image,
            registration_seconds=seconds,
        )
        controller = Controller(session, registration, dependencies)
        controller.on_new_session += [broker.configs.start, broker.features.start]
        broker.controller = controller
        broker.notices = self._notices
        broker.metadata_parts = MetadataParts()
        broker.notice_order = asyncio.Lock()
        broker.isr_changes = IsrProposals(
            broker.node_id, controller, self._link, environment.clock, environment.tasks
        )
        broker.isr_updates = isr_updates_of(broker, broker.isr_changes)
        broker.replicas.on_directory_offline.append(self._directory_failed)
        await controller.start()

    async def wait_until_informed(self) -> None:
        """Return when the controller has informed this broker, or after ten seconds."""
        if not await self._notices.wait_until_informed(INFORMED_SECONDS):
            _log.warning("no controller has informed this broker yet id=%d", self._broker.node_id)

    async def leave(self, is_hurried: asyncio.Event) -> None:
        """Give up the leaders, unless no other broker is live; end early if `is_hurried` is set."""
        await leaving.leave(self._broker, self._link, self._environment.clock, is_hurried)

    def close(self) -> None:
        """Close the connection to the controller."""
        self._link.close()

    def _registration(self, endpoints: Sequence[Endpoint]) -> BrokerImage:
        return BrokerImage(
            id=self._broker.node_id,
            host=endpoints[0].host,
            port=endpoints[0].port,
            rack=self._environment.options["broker.rack"],
            listener=endpoints[0].listener,
            endpoints=tuple(endpoints),
        )

    def _port_of(self, broker: BrokerImage) -> BrokerPort:
        if broker.id == self._broker.node_id:
            return self._notices
        environment = self._environment
        address = inter_broker_endpoint(broker, environment.options)
        channel = environment.channels.open(address.host, address.port, purpose="controller")
        registration = Registration(
            broker.id, broker.epoch, address.host, address.port, broker.registered_ms
        )
        return RemoteBroker(
            environment.net, environment.clock, channel, registration, self._reached
        )

    def _image_changed(self, update: MetadataUpdate) -> None:
        if update.deleted:
            self._broker.configs.forget_topics(update.deleted)
            self._broker.groups.topics_deleted(update.deleted)

    def _directory_failed(self) -> None:
        report = self._broker.controller.report_failed_directory
        self._environment.tasks.supervise(report, "report of a failed log directory")
