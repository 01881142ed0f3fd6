"""This broker as a member of its cluster: registration, notices of the controller, controlled
shutdown.

Assembles the controller with the ways to other brokers. `join` is the last step of a start, and
`leave` the first one of a stop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.zk.port import Coordination
from ottla.controller import registration
from ottla.controller.loop import Controller
from ottla.controller.planning.notices import BrokerPort, MetadataUpdate
from ottla.controller.term_context import Dependencies
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.net.port import Net
from ottla.replication.ports import IsrChanges
from ottla.replication.replicas import Replicas
from ottla.server import local_broker
from ottla.server.brokers import leaving
from ottla.server.brokers.addresses import inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.controller_link import ControllerLink
from ottla.server.brokers.isr_proposals import IsrProposals
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.process_watch import Registration
from ottla.server.brokers.remote import RemoteBroker, UpdatesUnderWay
from ottla.server.brokers.replication import isr_updates_of
from ottla.server.brokers.stray_replicas import StrayReplicas
from ottla.server.brokers.topics_elsewhere import TopicsElsewhere
from ottla.server.config.features import Features
from ottla.server.config.store import ConfigStore
from ottla.server.current import Current
from ottla.server.local_broker import LocalBroker
from ottla.storage.directories.registrations import StoredRegistrations

if TYPE_CHECKING:
    from ottla.server.authorization.authorizer import Authorizer

_log = logging.getLogger(__name__)

# How long a start waits for the controller's first notice; without it clients would see no topics.
INFORMED_SECONDS = 10.0
# For a ZooKeeper server that is late.
_MARGIN_SECONDS = 1.0
_UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Environment:
    """The ports, settings and replicas of a broker, on which its coordinators depend, too.

    `options` are those that it started with.
    """

    node_id: int
    clock: Clock
    rng: Rng
    net: Net
    files: FileSystem
    tasks: Tasks
    options: Snapshot
    channels: Channels
    current: Current
    configs: ConfigStore
    features: Features
    replicas: Replicas
    # None if every principal may do everything.
    authorizer: "Authorizer | None"


class BrokerMembership:
    """The broker's membership in the cluster, from its registration until it leaves.

    `session` is the broker's first one, and `connect` starts one in place of a lost one. The broker
    registers at `endpoints`.
    """

    def __init__(
        self,
        session: Coordination,
        connect: Callable[[], Awaitable[Coordination]],
        endpoints: Sequence[Endpoint],
        groups: GroupCoordinator,
        environment: Environment,
    ) -> None:
        self._connect = connect
        self._groups = groups
        self._environment = environment
        self._updates_under_way = UpdatesUnderWay()
        self._session = session
        # Called with the reason when another process has registered this broker's id.
        self.on_deposed: Callable[[ConfigError], None] = lambda error: None
        session_seconds = environment.options.integer("zookeeper.session.timeout.ms") / 1000
        # ZooKeeper ends a session at the next of its ticks, of which two are the shortest session.
        self._former_session_seconds = 1.5 * session_seconds + _MARGIN_SECONDS
        current, node_id = environment.current, environment.node_id
        peers = Peers(current, environment.channels, "requests")
        self._link = ControllerLink(node_id, current, peers, lambda: self.controller.controller_id)
        self.notices = LocalBroker(
            local_broker.Dependencies(
                node_id=node_id,
                clock=environment.clock,
                current=current,
                replicas=environment.replicas,
                configs=environment.configs,
                broker_epoch=lambda: self.controller.broker_epoch,
                on_update=self._image_changed,
                newest_controller=lambda: self.controller.registration.newest_epoch(),
            )
        )
        self._registered = self._registration(endpoints)
        self.controller = self._controller()
        self._stray_replicas = StrayReplicas(
            node_id,
            current,
            environment.replicas,
            self.controller,
            environment.clock,
            environment.tasks,
        )
        # Every broker follows these options; only the controller elects.
        self._was_unclean = current.options.boolean(_UNCLEAN)
        environment.configs.on_topic.append(self._topic_options_changed)
        environment.configs.on_broker.append(self._broker_options_changed)
        self.isr_changes: IsrChanges = IsrProposals(
            node_id, self.controller, self._link, environment.clock, environment.tasks
        )
        self.isr_updates = isr_updates_of(
            current, environment.replicas, self.isr_changes, environment.clock
        )

    def _controller(self) -> Controller:
        environment = self._environment
        dependencies = Dependencies(
            clock=environment.clock,
            rng=environment.rng,
            tasks=environment.tasks,
            options=lambda: environment.current.options,
            topic_options=environment.configs.topic,
            port_of=self._port_of,
            connect=self._connect,
            create_elsewhere=TopicsElsewhere(self._link, self.notices).ensure,
            local_image=lambda: environment.current.image,
            registration_seconds=self._former_session_seconds,
            registrations=StoredRegistrations(
                environment.files, environment.replicas.directories.directories()
            ),
            on_deposed=lambda error: self.on_deposed(error),
            ignores_case=environment.replicas.directories.ignores_case,
        )
        controller = Controller(self._session, self._registered, dependencies)
        controller.on_new_session.append(self._registration_lost)
        controller.on_new_session += [environment.configs.start, environment.features.start]
        if environment.authorizer is not None:
            controller.on_new_session.append(environment.authorizer.store.start)
        return controller

    async def _registration_lost(self, _session: Coordination) -> None:
        self._environment.replicas.registration_lost()

    async def join(self) -> None:
        """Register and become a candidate for the controller's role.

        Raises ConfigError if the id or one of the addresses belongs to another broker, or if two
        topics of this broker would be in one folder.
        """
        await registration.refuse_shared_addresses(self._session, self._registered)
        if self._environment.replicas.directories.ignores_case:
            await registration.refuse_shared_folders(self._session, self._environment.node_id)
        self._environment.replicas.on_directory_offline.append(self._directory_failed)
        await self.controller.start()

    async def wait_until_informed(self) -> None:
        """Return when the controller has informed this broker, or after ten seconds."""
        if not await self.notices.wait_until_informed(INFORMED_SECONDS):
            _log.warning(
                "no controller has informed this broker yet id=%d", self._environment.node_id
            )
        # A controller of Apache Kafka does not say which of its updates is complete.
        self._stray_replicas.look_for_them()

    async def leave(self, is_hurried: asyncio.Event) -> None:
        """Give up the leaders, unless no other broker is live; end early if `is_hurried` is set."""
        environment = self._environment
        if environment.replicas.fetchers is not None:
            environment.replicas.fetchers.is_leaving = True
        await leaving.leave(
            environment.node_id,
            environment.current,
            self.controller,
            self._link,
            environment.clock,
            is_hurried,
        )

    def close(self) -> None:
        """Close the connection to the controller."""
        self._link.close()

    def _registration(self, endpoints: Sequence[Endpoint]) -> BrokerImage:
        return BrokerImage(
            id=self._environment.node_id,
            host=endpoints[0].host,
            port=endpoints[0].port,
            rack=self._environment.options["broker.rack"],
            listener=endpoints[0].listener,
            endpoints=tuple(endpoints),
        )

    def _port_of(self, broker: BrokerImage) -> BrokerPort:
        environment = self._environment
        if broker.id == environment.node_id:
            return self.notices
        address = inter_broker_endpoint(broker, environment.options)
        channel = environment.channels.open(address.host, address.port, purpose="controller")
        # Only a broker of Apache Kafka, which lacks the secret, registers before it listens.
        registered_ms = 0 if environment.channels.prove_identity else broker.registered_ms
        registration = Registration(
            broker.id, broker.epoch, address.host, address.port, registered_ms
        )
        return RemoteBroker(
            environment.net,
            environment.clock,
            channel,
            registration,
            environment.current.contacts,
            self._updates_under_way,
        )

    def _image_changed(self, update: MetadataUpdate) -> None:
        if update.brokers is not None:
            self.isr_updates.brokers_changed()
        if update.is_complete:
            self._stray_replicas.look_for_them()
        if update.deleted:
            self._environment.configs.forget_topics(update.deleted)
            self._groups.topics_deleted(update.deleted)

    def _topic_options_changed(self, topic: str, options: Snapshot) -> None:
        if options.boolean(_UNCLEAN):
            self.controller.unclean_elections_enabled(topic)

    def _broker_options_changed(self, options: Snapshot) -> None:
        was_unclean, self._was_unclean = self._was_unclean, options.boolean(_UNCLEAN)
        if self._was_unclean and not was_unclean:
            self.controller.unclean_elections_enabled(None)

    def _directory_failed(self) -> None:
        self._environment.tasks.supervise(
            self.controller.registration.report_failed_directory, "report of a failed log directory"
        )
