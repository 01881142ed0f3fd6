"""The composition of a broker: how its parts are constructed from each other.

Nothing is started here: `server.node` decides when, and in which order everything is stopped.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.slices import Lane
from ottla.base.tasks import Tasks
from ottla.cluster import features
from ottla.cluster.broker_secret import BrokerSecret
from ottla.cluster.image import ClusterImage
from ottla.cluster.options import authorization_options, option_tables, security_options
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.cluster.zk.port import Coordination
from ottla.net.port import Net
from ottla.replication.replicas import Replicas
from ottla.security.scram import ScramMechanism
from ottla.server.audit.log import AuditLog, LoggerSink, Sink
from ottla.server.authentication.logins import Logins
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.membership import BrokerMembership, Environment
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.replication import limit_traffic, replica_fetchers
from ottla.server.config.features import Features
from ottla.server.config.store import ConfigStore
from ottla.server.context import Broker
from ottla.server.coordinators import Coordinators
from ottla.server.current import Current
from ottla.server.fetch.sessions import FetchSessions
from ottla.server.listeners import Listeners
from ottla.server.metadata_parts import MetadataParts
from ottla.server.produce.heavy_batches import HeavyBatches
from ottla.server.quotas.clients import ClientQuotas, client_quotas
from ottla.server.telemetry.clients import ClientMetrics, client_metrics
from ottla.server.transport import apis
from ottla.storage.cleaner import cleaning
from ottla.storage.cleaner.cleaning import Cleaner
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.upkeep import Intervals

# Only brokers with TLS, SCRAM, OAUTHBEARER, a secret key for delegation tokens, an authorizer, or a
# file for the audit log need them.
if TYPE_CHECKING:
    from ottla.cluster.options.security.broker_login import BrokerLogin
    from ottla.server.audit import sinks
    from ottla.server.authentication import (
        bearers,
        broker_user,
        certificates,
        plain_users,
        scram_users,
        tokens,
    )
    from ottla.server.authentication.certificates import Certificates
    from ottla.server.authorization import authorizer as authorizing
    from ottla.server.authorization import store
    from ottla.server.authorization.authorizer import Authorizer
else:
    certificates = deferred_module("ottla.server.authentication.certificates")
    sinks = deferred_module("ottla.server.audit.sinks")
    bearers = deferred_module("ottla.server.authentication.bearers")
    broker_user = deferred_module("ottla.server.authentication.broker_user")
    plain_users = deferred_module("ottla.server.authentication.plain_users")
    scram_users = deferred_module("ottla.server.authentication.scram_users")
    tokens = deferred_module("ottla.server.authentication.tokens")
    authorizing = deferred_module("ottla.server.authorization.authorizer")
    store = deferred_module("ottla.server.authorization.store")

# More than a cluster has brokers; consumers have sessions of their own.
_FOLLOWER_SESSIONS_MAX = 10_000


class Settings(NamedTuple):
    """The settings that a broker follows, and the parts that they configure.

    `tokens` is None if the broker issues no delegation tokens, `scram_users` if no listener has
    SCRAM, `broker_login` if brokers do not log in with SCRAM.
    """

    current: Current
    configs: ConfigStore
    features: Features
    quotas: ClientQuotas
    client_metrics: ClientMetrics
    audit: AuditLog
    tokens: "tokens.DelegationTokens | None"
    scram_users: "scram_users.ScramUsers | None"
    broker_login: "BrokerLogin | None"

    async def start(self, session: Coordination, rng: Rng) -> None:
        """Read the settings from the tree, and follow their changes from now on."""
        if self.scram_users is not None:
            await self.scram_users.start(session, rng)
            self.configs.on_entity.append(self.scram_users.settings_changed)
        if self.broker_login is not None:
            await broker_user.ensure(session, self.broker_login, rng)
        self.configs.on_entity += [
            self.quotas.settings_changed,
            self.client_metrics.settings_changed,
        ]
        self.client_metrics.on_change.append(self._client_metrics_changed)
        await self.configs.start(session)
        await self.features.start(session)
        if self.tokens is not None:
            await self.tokens.start(session)
        self.current.options = self.configs.broker

    def _client_metrics_changed(self, is_any_asked_for: bool) -> None:
        served = apis.advertised_apis(with_client_metrics=is_any_asked_for)
        self.current.advertised_apis = served


class Identity(NamedTuple):
    """The cluster's id, and the secret by which its brokers know each other; None without one."""

    cluster_id: str
    secret: BrokerSecret | None


class Composition(NamedTuple):
    """The ports and the options of a broker, from which its other parts are constructed.

    `options` are those that it started with.
    """

    node_id: int
    options: Snapshot
    clock: Clock
    rng: Rng
    files: FileSystem
    net: Net
    tasks: Tasks

    async def certificates(self, settings: Settings) -> "Certificates | None":
        """Return the certificates of the listeners with TLS, which are renewed; None without TLS.

        Raises ConfigError if files cannot be used.
        """
        protocols = [row.protocol for row in option_tables.parse_listeners(self.options)]
        if not any(protocol.endswith("SSL") for protocol in protocols):
            return None
        found = certificates.Certificates(self.options, self.files, self.clock)
        await found.load(settings.current.options)
        self.tasks.supervise(found.watch, "certificates")

        def changed() -> None:
            options = settings.configs.broker
            self.tasks.spawn(found.change(options), "altered certificates")

        settings.configs.on_own.append(changed)
        return found

    async def secret(self, session: Coordination) -> BrokerSecret | None:
        """Return the secret of the cluster, which it follows; None if brokers do not use it."""
        is_by_login = option_tables.login_of_brokers(self.options) is not None
        if is_by_login or self.options.text("inter.broker.authentication") != "secret":
            return None
        overlap_ms = self.options.integer("inter.broker.secret.overlap.ms")
        secret = BrokerSecret(self.clock, self.rng, self.tasks, overlap_ms)
        await secret.start(session)
        return secret

    def settings(self, cluster_id: str, security: Mapping[str, ListenerSecurity]) -> Settings:
        """Return the settings before they have been read from the tree.

        `security` has the listeners' security by name.
        """
        configs = ConfigStore(self.options, self.node_id, self.tasks)
        served = apis.advertised_apis()
        image = ClusterImage(cluster_id=cluster_id)
        return Settings(
            current=Current(image=image, options=configs.broker, advertised_apis=served),
            configs=configs,
            features=Features(features.supported(served), self.tasks),
            quotas=client_quotas(self.options, self.clock),
            client_metrics=client_metrics(self.options, self.rng),
            audit=self._audit(),
            tokens=self._tokens(),
            scram_users=_scram_users(security.values()),
            broker_login=option_tables.login_of_brokers(self.options),
        )

    def _audit(self) -> AuditLog:
        options, path = self.options, self.options.text("audit.log.file")
        sink: Sink = LoggerSink()
        if path:
            sink = sinks.FileSink(
                path,
                max_bytes=options.integer("audit.log.file.max.bytes"),
                backups=options.integer("audit.log.file.backups"),
                files=self.files,
                clock=self.clock,
            )
        return AuditLog(options, self.node_id, sink, self.clock, self.tasks)

    def _tokens(self) -> "tokens.DelegationTokens | None":
        options = self.options
        secret_key = security_options.token_secret_key(options)
        if not secret_key:
            return None
        settings = tokens.Settings.from_options(secret_key, options)
        return tokens.DelegationTokens(settings, self.clock, self.rng, self.tasks)

    def open_directories(
        self,
        configs: ConfigStore,
        cluster_id: str,
        on_offline: Callable[[str, StorageError], None],
        is_wanted: Callable[[], bool],
    ) -> LogDirectories:
        """Load the logs; raises StorageError, and ends early if they are no longer wanted."""
        return LogDirectories.open(
            self.options.strings("log.dirs"),
            files=self.files,
            clock=self.clock,
            rng=self.rng,
            cluster_id=cluster_id,
            broker_id=self.node_id,
            is_kraft=bool(self.options["process.roles"]),
            topic_config=lambda topic: LogConfig.from_options(configs.topic(topic)),
            on_offline=on_offline,
            is_wanted=is_wanted,
        )

    def replicas(self, directories: LogDirectories, settings: Settings) -> Replicas:
        """Return the replicas of the broker, which follow the settings."""
        current, configs = settings.current, settings.configs
        replicas = Replicas(
            self.node_id,
            directories,
            clock=self.clock,
            files=self.files,
            tasks=self.tasks,
            topic_options=configs.topic,
            image=lambda: current.image,
        )
        directories.upkeep.intervals = Intervals.from_options(self.options)
        configs.on_broker.append(lambda _: replicas.update_configs())
        configs.on_topic.append(lambda topic, _: replicas.update_configs(topic))
        limit_traffic(replicas, current)
        return replicas

    def environment(
        self,
        settings: Settings,
        replicas: Replicas,
        secret: BrokerSecret | None,
        certificates: "Certificates | None",
    ) -> Environment:
        """Return the parts that membership and coordinators depend on."""
        return Environment(
            node_id=self.node_id,
            clock=self.clock,
            rng=self.rng,
            net=self.net,
            files=self.files,
            tasks=self.tasks,
            options=self.options,
            channels=Channels(
                self.net,
                self.rng,
                self.node_id,
                secret,
                (lambda: None) if certificates is None else certificates.client,
                settings.broker_login,
            ),
            current=settings.current,
            configs=settings.configs,
            features=settings.features,
            replicas=replicas,
            authorizer=self._authorizer(settings.audit),
        )

    def _authorizer(self, audit: AuditLog) -> "Authorizer | None":
        """Return the authorizer, which `start` of its store makes ready; None without one."""
        rules = authorization_options.rules_of(self.options)
        if rules is None:
            return None
        authorizer = authorizing.Authorizer(rules, store.AclStore(self.tasks, self.clock))
        authorizer.on_denial = audit.denied
        return authorizer

    def connect_fetchers(self, environment: Environment, membership: BrokerMembership) -> None:
        """Let the replicas fetch from the leaders that the controller names."""
        replicas, current = environment.replicas, environment.current
        replicas.fetchers = replica_fetchers(
            self.node_id,
            current,
            Peers(current, environment.channels, "fetcher"),
            traffic=replicas.replication,
            broker_epoch=lambda: membership.controller.broker_epoch,
            clock=self.clock,
            tasks=self.tasks,
        )

    def broker(
        self,
        identity: Identity,
        settings: Settings,
        replicas: Replicas,
        coordinators: Coordinators,
        membership: BrokerMembership,
        listeners: Listeners,
    ) -> Broker:
        """Return the broker as request handlers see it."""
        sessions_max = self.options.integer("max.incremental.fetch.session.cache.slots")
        return Broker(
            node_id=self.node_id,
            cluster_id=identity.cluster_id,
            secret=identity.secret,
            brokers_prove=identity.secret is not None or settings.broker_login is not None,
            broker_listeners=option_tables.broker_listeners(self.options),
            clock=self.clock,
            rng=self.rng,
            tasks=self.tasks,
            current=settings.current,
            replicas=replicas,
            groups=coordinators.groups,
            transactions=coordinators.transactions,
            markers=coordinators.markers,
            admission=coordinators.admission,
            producer_ids=coordinators.producer_ids,
            controller=membership.controller,
            notices=membership.notices,
            metadata_parts=MetadataParts(),
            notice_order=asyncio.Lock(),
            configs=settings.configs,
            features=settings.features,
            fetch_sessions=FetchSessions(sessions_max, clock=self.clock, rng=self.rng),
            follower_sessions=FetchSessions(
                _FOLLOWER_SESSIONS_MAX, clock=self.clock, rng=self.rng, drops_idle=True
            ),
            isr_updates=membership.isr_updates,
            isr_changes=membership.isr_changes,
            heavy_batches=HeavyBatches(
                self.files,
                self.clock,
                lambda: settings.configs.broker.integer("message.decompressed.max.bytes"),
            ),
            logins=self._logins(settings, listeners),
            quotas=settings.quotas,
            client_metrics=settings.client_metrics,
            lane=Lane(self.clock),
            audit=settings.audit,
            advertised=listeners.advertised,
        )

    def _logins(self, settings: Settings, listeners: Listeners) -> Logins:
        logins = Logins(
            listeners.security,
            settings.scram_users,
            self.rng,
            self.clock,
            settings.tokens,
            self._bearers(listeners),
            listeners.logins,
        )
        logins.plain_users = {
            name: plain_users.PlainUsers(security.users_path, self.files)
            for name, security in listeners.security.items()
            if security.users_path
        }
        logins.broker = settings.broker_login
        logins.for_brokers = option_tables.broker_listeners(self.options)
        return logins

    def _bearers(self, listeners: Listeners) -> "bearers.Bearers | None":
        if all(security.bearer is None for security in listeners.security.values()):
            return None
        return bearers.Bearers(listeners.security, self.files, self.clock, self.tasks)

    def cleaner(self, broker: Broker) -> Cleaner:
        """Return the log cleaner of a broker, which follows its options."""
        return Cleaner(
            broker.replicas.directories,
            files=self.files,
            clock=self.clock,
            settings=lambda: cleaning.Settings.from_options(broker.options),
        )


def _scram_users(listeners: Iterable[ListenerSecurity]) -> "scram_users.ScramUsers | None":
    names = {mechanism.mechanism_name for mechanism in ScramMechanism}
    has_scram = any(names.intersection(listener.mechanisms) for listener in listeners)
    return scram_users.ScramUsers() if has_scram else None
