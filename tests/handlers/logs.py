"""A broker for the handlers of records: real replicas on a simulated disk, no network, no
controller.

Requests and responses pass through the codec of their version, so a field that the version lacks is
an error.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import SeededRng
from ottla.base.slices import Lane
from ottla.base.tasks import Tasks
from ottla.cluster import features
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import validate_topic_name
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.cluster.znodes import ConfigNode
from ottla.controller.planning.notices import MetadataUpdate
from ottla.net.connection import Connection
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.security.broker_proof import KeysByGeneration
from ottla.server import local_broker
from ottla.server.authentication.logins import Logins
from ottla.server.authentication.scram_users import ScramUsers
from ottla.server.config.features import Features
from ottla.server.config.store import ConfigStore
from ottla.server.context import Broker, RequestContext
from ottla.server.current import Current
from ottla.server.fetch.sessions import FetchSessions
from ottla.server.local_broker import LocalBroker
from ottla.server.metadata_parts import MetadataParts
from ottla.server.produce.heavy_batches import HeavyBatches
from ottla.server.transport import apis
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.testing.sim.files import SimFileSystem
from ottla.wire import schema
from ottla.wire.records.records import Record, decode_batch, encode_batch
from tests.handlers.audited import Records, audit_log

NODE = 1
OTHER = 2


class Clock(RealClock):
    """Monotonic time that tests advance; wall-clock time is constant."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return 1_767_225_600_000


def scram_users(settings: Mapping[str, Mapping[str, str]], secret: bytes = b"") -> ScramUsers:
    """Return users of SCRAM with these settings in the tree."""
    users = ScramUsers()
    users.begin(secret)
    for name, values in settings.items():
        users.settings_changed(ConfigNode.USERS, ConfigNode.sanitize(name), values)
    return users


class FixedSecret:
    """The secret of a cluster that is not replaced."""

    def __init__(self, keys: KeysByGeneration) -> None:
        self._keys = keys

    def valid_keys(self) -> KeysByGeneration:
        return self._keys


class NoConfigs:
    """A config store that has nothing to read."""

    def unread(self, names: Any) -> list[str]:
        return []


class LogsBroker:
    """Broker 1 of two; `create` creates topics as a controller does."""

    def __init__(self) -> None:
        self.node_id = NODE
        self.cluster_id = "cluster"
        self.secret = FixedSecret({1: b"s" * 32})
        self.brokers_prove = True
        self.broker_listeners = frozenset({"PLAINTEXT"})
        self.notice_order = asyncio.Lock()
        self.clock = Clock()
        self.rng = SeededRng(1)
        self.tasks = Tasks()
        self.logins = Logins(
            {"SASL": ListenerSecurity(("PLAIN", "SCRAM-SHA-256"), {"ann": "secret"})},
            scram_users({}),
            self.rng,
            self.clock,
        )
        self.audited = Records()
        self.audit = audit_log(self.audited, self.clock, self.tasks)
        self.advertised: dict[str, tuple[str, int]] = {}
        self.held: list[tuple[int, Any]] = []
        self.files = SimFileSystem()
        self.topic_settings: dict[str, dict[str, str]] = {}
        self.controller_refuses: ApiError | None = None
        self.controller = cast(Any, self)
        self.current = Current(
            image=ClusterImage(cluster_id="cluster", controller_id=NODE).with_brokers(
                [BrokerImage(NODE, "b1", 9092, rack="r1"), BrokerImage(OTHER, "b2", 9093)]
            ),
            options=BROKER_OPTIONS.parse({}),
            advertised_apis=apis.advertised_apis(),
        )
        self.configs = cast(ConfigStore, NoConfigs())
        self.metadata_parts = MetadataParts()
        self.directories = LogDirectories.open(
            ["/data"],
            files=self.files,
            clock=self.clock,
            rng=self.rng,
            broker_id=NODE,
            default_config=LogConfig(),
            on_offline=lambda path, error: self.replicas.directory_offline(path, error),
        )
        self.replicas = Replicas(
            NODE,
            self.directories,
            clock=self.clock,
            files=self.files,
            tasks=self.tasks,
            topic_options=self.options_of,
            image=lambda: self.image,
        )
        self.features = Features(features.supported(self.current.advertised_apis), self.tasks)
        self.fetch_sessions = FetchSessions(4, clock=self.clock, rng=self.rng)
        self.follower_sessions = FetchSessions(4, clock=self.clock, rng=self.rng)
        self.isr_updates = cast(Any, SimpleNamespace(follower_fetched=lambda *_: None))
        self.heavy_batches = HeavyBatches(self.files, self.clock)
        self.lane = Lane(self.clock)
        self.notices = self.receive_notices()

    def receive_notices(
        self, broker_epoch: int = 10, on_update: Callable[[MetadataUpdate], None] = lambda _: None
    ) -> LocalBroker:
        """Receive the notices of controllers, as a broker that is registered in this epoch."""
        self.notices = LocalBroker(
            local_broker.Dependencies(
                node_id=self.node_id,
                clock=self.clock,
                current=self.current,
                replicas=self.replicas,
                configs=self.configs,
                broker_epoch=lambda: broker_epoch,
                on_update=on_update,
            )
        )
        return self.notices

    @property
    def image(self) -> ClusterImage:
        return self.current.image

    @image.setter
    def image(self, image: ClusterImage) -> None:
        self.current.image = image

    @property
    def options(self) -> Snapshot:
        return self.current.options

    @options.setter
    def options(self, options: Snapshot) -> None:
        self.current.options = options

    def options_of(self, topic: str) -> Snapshot:
        return option_tables.topic_snapshot(self.options, self.topic_settings.get(topic, {}))

    def create(
        self,
        name: str,
        *,
        partitions: int = 1,
        leader: int = NODE,
        leader_epoch: int = 3,
        replicas: tuple[int, ...] = (NODE,),
        config: Mapping[str, str] | None = None,
    ) -> TopicImage:
        """Create a topic, or change the leader of an existing one."""
        self.topic_settings.setdefault(name, {}).update(config or {})
        known = self.image.topic(name)
        topic_id = known.topic_id if known else self.rng.random_bytes(16)
        images = tuple(
            PartitionImage(number, leader, leader_epoch, replicas, replicas)
            for number in range(partitions)
        )
        topic = TopicImage(name, topic_id, images)
        self.replicas.apply_leader_and_isr(1, topic.states())
        self.image = self.image.with_topics([topic])
        return topic

    async def ensure_topic(self, name: str) -> None:
        """Create a topic as the controller does."""
        await asyncio.sleep(0)
        if self.controller_refuses is not None:
            raise self.controller_refuses
        validate_topic_name(name)
        if self.image.topic(name) is not None:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS)
        self.create(name)

    def partition(self, topic: str, number: int = 0) -> Partition:
        return self.replicas.get(topic, number)

    def write(self, topic: str, *values: bytes, number: int = 0, timestamp: int = 1000) -> None:
        """Append each value as a batch of its own."""
        for value in values:
            self.partition(topic, number).append_as_leader(
                batch(value, timestamp=timestamp), acks=1
            )

    def context(self, handler: ModuleType, version: int, listener: str = "PLAINTEXT") -> Any:
        from_client = connection(listener, self.held)
        return RequestContext(
            cast(Broker, self), from_client, int(handler.API), version, 1, "client"
        )

    def begin(self, handler: ModuleType, request: Any, version: int) -> Any:
        """Send a request through the codec; return what the handler returned."""
        decoded, _ = schema.decode(
            type(request), version, bytearray(schema.encode(request, version))
        )
        return handler.handle(self.context(handler, version), decoded)

    async def ask(self, handler: ModuleType, request: Any, version: int) -> Any:
        """Send a request through the codec; return the response through it, or None."""
        response = self.begin(handler, request, version)
        if inspect.isawaitable(response):
            response = await response
        return None if response is None else through_codec(response, version)


def through_codec(response: Any, version: int) -> Any:
    return schema.decode(type(response), version, schema.encode(response, version))[0]


class _Peer(SimpleNamespace):
    """The parts of a connection that handlers use."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def connection(
    listener: str = "PLAINTEXT", held: list[tuple[int, Any]] | None = None
) -> Connection:
    """Return a connection; memory that is held for a future is appended to `held`."""
    noted = [] if held is None else held
    peer = _Peer(
        listener_name=listener,
        memo=SimpleNamespace(software=None),
        identity=None,
        channel_binding=b"",
        local_address=("127.0.0.1", 7),
        peer_address=("127.0.0.9", 8),
        answer_room_bytes=1 << 30,
        is_closed=False,
        range_bytes_min=1 << 62,
        budget=SimpleNamespace(hold_until=lambda *memory: noted.append(memory)),
    )
    return cast(Connection, peer)


def batch(*values: bytes, timestamp: int = 1000, **fields: Any) -> bytearray:
    """Return one batch with a record for each value."""
    return encode_batch([Record(None, value, (), timestamp) for value in values], **fields)


def values(records: Any) -> list[bytes | None]:
    """Return the values of consecutive batches."""
    data, position, result = bytes(records or b""), 0, []
    while position < len(data):
        result += [record.value for record in decode_batch(data, position)]
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return result


@asynccontextmanager
async def logs_broker() -> AsyncIterator[LogsBroker]:
    """Run a broker and end its tasks."""
    broker = LogsBroker()
    try:
        yield broker
    finally:
        broker.replicas.finish_waiting()
        await broker.tasks.close()
