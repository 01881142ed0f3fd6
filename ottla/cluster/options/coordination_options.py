"""The broker options that say where the cluster's metadata is, and how a broker reaches it."""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.metrics_options import check_address
from ottla.cluster.options.option_rows import Rows

_row = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _row(
        "zookeeper.connect",
        OptionType.STRING,
        None,
        "The ZooKeeper ensemble that keeps the cluster's metadata, as host:port,host:port/path. "
        "The path is created if it is missing. Without it Ottla keeps the metadata itself, in "
        "coordination.dir.",
    ),
    _row(
        "zookeeper.session.timeout.ms",
        OptionType.INT,
        18_000,
        "Milliseconds without a heartbeat after which a broker counts as dead. ZooKeeper itself "
        "limits the value: by default to 2 to 20 times its tickTime, and one that "
        "`ottla zookeeper start` has started to 2 to 40 s.",
        minimum=1,
    ),
    _row(
        "zookeeper.connection.timeout.ms",
        OptionType.INT,
        None,
        "Milliseconds that a broker that starts waits for an ensemble to respond. Defaults to "
        "zookeeper.session.timeout.ms.",
        minimum=1,
    ),
    _row(
        "zookeeper.set.acl",
        OptionType.BOOLEAN,
        False,
        "Give the nodes that the broker creates in a ZooKeeper access control lists: all may read "
        "them, only the user of the broker may change them, and only it may read those with "
        "secrets. The user is named in the section Client of the JAAS file in "
        "KAFKA_OPTS=-Djava.security.auth.login.config=FILE.",
    ),
    _row(
        "zookeeper.ssl.client.enable",
        OptionType.BOOLEAN,
        None,
        "Encrypt the connection to the ZooKeeper with TLS. Like the other zookeeper.ssl options, "
        "it defaults to ZooKeeper's system property in KAFKA_OPTS (-Dzookeeper.client.secure).",
    ),
    _row(
        "zookeeper.clientCnxnSocket",
        OptionType.STRING,
        None,
        "Apache Kafka needs org.apache.zookeeper.ClientCnxnSocketNetty for TLS; Ottla accepts any "
        "class, and loads none.",
    ),
    _row(
        "zookeeper.ssl.keystore.location",
        OptionType.STRING,
        None,
        "A file with the broker's certificate and its key, in PEM or PKCS#12. The ZooKeeper may take "
        "the certificate for a user, which then needs no JAAS file.",
    ),
    _row(
        "zookeeper.ssl.keystore.password",
        OptionType.PASSWORD,
        None,
        "The password of the key in PEM, or of the store in PKCS#12.",
        sensitive=True,
    ),
    _row(
        "zookeeper.ssl.keystore.type",
        OptionType.STRING,
        None,
        "PEM or PKCS12, by default according to the ending of the file.",
    ),
    _row(
        "zookeeper.ssl.truststore.location",
        OptionType.STRING,
        None,
        "A file with the certificates of the authorities that have signed ZooKeeper's, in "
        "PEM or PKCS#12. No others are trusted.",
    ),
    _row(
        "zookeeper.ssl.truststore.password",
        OptionType.PASSWORD,
        None,
        "The password of a trust store in PKCS#12; one in PEM needs no password.",
        sensitive=True,
    ),
    _row(
        "zookeeper.ssl.truststore.type",
        OptionType.STRING,
        None,
        "PEM or PKCS12, by default according to the ending of the file.",
    ),
    _row(
        "zookeeper.ssl.endpoint.identification.algorithm",
        OptionType.STRING,
        None,
        "HTTPS, the default, requires that the certificate is of the host in zookeeper.connect; an "
        "empty value does not.",
    ),
    _row(
        "broker.id.generation.enable",
        OptionType.BOOLEAN,
        True,
        "Generate the id of a broker on ZooKeeper that `ottla broker start` starts without one. It "
        "is kept in the log directory.",
    ),
    _row(
        "reserved.broker.max.id",
        OptionType.INT,
        1_000,
        "Generated broker ids are higher than this.",
        minimum=0,
    ),
    _row(
        "coordination.dir",
        OptionType.STRING,
        None,
        "Ottla's own: the folder for the cluster's metadata if there is no ZooKeeper. Defaults to "
        "the first of log.dirs. A broker that can no longer write to it stops, so with several "
        "disks, a folder apart from all log directories is safest.",
    ),
    _row(
        "coordination.listener",
        OptionType.STRING,
        None,
        "Ottla's own: host:port at which the brokers of one machine share the metadata in "
        "coordination.dir, without ZooKeeper. One of them serves it in ZooKeeper's protocol; if it "
        "ends, another one takes over. Clients log in with the JAAS file cluster.jaas in "
        "coordination.dir. An address that other machines can reach needs TLS "
        "(zookeeper.ssl.client.enable, the key store and the trust store).",
        check=check_address,
    ),
)
