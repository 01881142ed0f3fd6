"""Kafka's client options, and their names in librdkafka.

Options that are missing here are passed to librdkafka unchanged: it has most of Kafka's names.
The tables follow ProducerConfig, ConsumerConfig and CommonClientConfigs of Apache Kafka 4.3.

Not done: JKS key stores, other classes of `sasl.login.callback.handler.class` than Kafka's own, and
`config.providers`, which are refused. An `AdminClient` ignores `request.timeout.ms` and `retries`.
`default.api.timeout.ms` bounds each of its calls, with all retries.
"""

from enum import Enum


class Role(Enum):
    """The kinds of client."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin client"


# Options that librdkafka does not have, or does not act on as Kafka's clients do.
_SHARED_OWN = frozenset({"interceptor.classes"})
OWN = {
    Role.PRODUCER: _SHARED_OWN
    | {
        "key.serializer",
        "value.serializer",
        "partitioner.class",
        "partitioner.ignore.keys",
        "max.block.ms",
    },
    Role.CONSUMER: _SHARED_OWN
    | {
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "max.poll.records",
        "default.api.timeout.ms",
        "exclude.internal.topics",
    },
    # All of its options: librdkafka takes no part.
    Role.ADMIN: frozenset(
        {
            "bootstrap.servers",
            "client.dns.lookup",
            "client.id",
            "connections.max.idle.ms",
            "default.api.timeout.ms",
            "enable.metrics.push",
            "enable.sasl.oauthbearer.unsecure.jwt",
            "enable.ssl.certificate.verification",
            "https.ca.location",
            "metadata.max.age.ms",
            "metadata.recovery.strategy",
            "oauth_cb",
            "receive.buffer.bytes",
            "reconnect.backoff.max.ms",
            "reconnect.backoff.ms",
            "request.timeout.ms",
            "retries",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "security.protocol",
            "send.buffer.bytes",
            "socket.connection.setup.timeout.max.ms",
            "socket.connection.setup.timeout.ms",
        }
    ),
}
"""Options that only Ottla's part of a client reads."""

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
"""Kafka's names that librdkafka spells in another way."""

# Of Kafka's clients before 2.0; later ones ignore them with a warning.
_FORMER = frozenset(
    {
        "block.on.buffer.full",
        "compressed.topics",
        "consumer.id",
        "consumer.timeout.ms",
        "dual.commit.enabled",
        "key.serializer.class",
        "metadata.fetch.timeout.ms",
        "mirror.consumer.numthreads",
        "mirror.topics.blacklist",
        "mirror.topics.whitelist",
        "num.consumer.fetchers",
        "offsets.channel.backoff.ms",
        "offsets.channel.socket.timeout.ms",
        "offsets.commit.max.retries",
        "offsets.storage",
        "producer.type",
        "queue.enqueue.timeout.ms",
        "queued.max.message.chunks",
        "rebalance.backoff.ms",
        "rebalance.max.retries",
        "refresh.leader.backoff.ms",
        "serializer.class",
        "shallow.iterator.enable",
        "timeout.ms",
        "zookeeper.connect",
        "zookeeper.connection.timeout.ms",
        "zookeeper.session.timeout.ms",
        "zookeeper.sync.time.ms",
    }
)
IGNORED = _FORMER | frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup.timeout.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "security.providers",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.keystore.type",
        "ssl.secure.random.implementation",
    }
)
"""Options of the Java clients that do not change which records are written or read."""

_ONLY_PRODUCER = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "retries",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
    }
)
_ONLY_CONSUMER = frozenset(
    {
        "allow.auto.create.topics",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)
OF_THE_OTHER = {
    Role.PRODUCER: (_ONLY_CONSUMER | OWN[Role.CONSUMER]) - OWN[Role.PRODUCER],
    Role.CONSUMER: (_ONLY_PRODUCER | OWN[Role.PRODUCER]) - OWN[Role.CONSUMER],
    Role.ADMIN: (
        _ONLY_PRODUCER | OWN[Role.PRODUCER] | _ONLY_CONSUMER | OWN[Role.CONSUMER] | RENAMED.keys()
    )
    - OWN[Role.ADMIN],
}
"""Options of other kinds of client: one file may serve all, so they are ignored in files."""

_SHARED = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "security.protocol",
        "ssl.ca.location",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
KNOWN = {
    Role.PRODUCER: _SHARED | _ONLY_PRODUCER | OWN[Role.PRODUCER] | RENAMED.keys(),
    Role.CONSUMER: _SHARED | _ONLY_CONSUMER | OWN[Role.CONSUMER] | RENAMED.keys(),
    Role.ADMIN: _SHARED | OWN[Role.ADMIN],
}
"""Names that an error may suggest for a misspelled one."""


def dotted(word: str) -> str:
    """Return Kafka's name of a keyword argument: `max_poll_records` is `max.poll.records`."""
    # The names of librdkafka that have an underscore themselves.
    if word in ("log_level", "error_cb", "stats_cb", "throttle_cb", "oauth_cb", "logger"):
        return word
    return word.replace("_", ".")
