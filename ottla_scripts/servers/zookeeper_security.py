"""`zookeeper-security-migration` (kafka.admin.ZkSecurityMigrator of 3.9): `ottla zookeeper secure`
and `unsecure` by Apache Kafka's name.
"""

from ottla.base.loading import load_module
from ottla_scripts.flags import Flag, Options, Spec, integer

SPEC = Spec(
    "ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of "
    "setting up ZooKeeper authentication.",
    {
        "zookeeper.acl": Flag("`secure` or `unsecure`: who may change the nodes.", "String"),
        "zookeeper.connect": Flag(
            "The ensemble, as in host1:2181,host2:2181/path.", "String", default="localhost:2181"
        ),
        "zookeeper.session.timeout": Flag(
            "Milliseconds; default: 30000.", "Integer", integer, default=30_000
        ),
        "zookeeper.connection.timeout": Flag(
            "Milliseconds to wait for a response; default: 30000.",
            "Integer",
            integer,
            default=30_000,
        ),
        "enable.path.check": Flag("Change nothing if nodes of a cluster are missing."),
        "zk-tls-config-file": Flag(
            "A properties file with zookeeper.ssl options.", "ZooKeeper TLS configuration"
        ),
    },
)


def run(options: Options) -> int:
    """Set the access control lists of all nodes."""
    # The client of ZooKeeper takes longer to load than the rest.
    return int(load_module(f"{__package__}.zookeeper_migration").run(options))
