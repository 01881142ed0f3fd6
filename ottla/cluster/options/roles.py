"""The roles of a KRaft node in the configuration of a broker; pure.

Ottla has no KRaft quorum: its controller is one of the brokers. A node that Apache Kafka would run
as broker and only controller is a cluster of one broker here. A node that expects controllers
elsewhere must not become a cluster of its own without notice.
"""

import re

from ottla.base.errors import ConfigError
from ottla.base.options import Snapshot
from ottla.cluster.options.option_tables import parse_listeners

VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_VOTER = re.compile(r"(\d+)@(.+):(\d+)")
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REMEDY = (
    "Set zookeeper.connect on every broker of the cluster, or run several brokers on one machine "
    "with `ottla up --brokers 3`."
)
_SEPARATE = "and this broker would be a cluster of its own"


def refuse_separate_cluster(options: Snapshot) -> None:
    """Raise ConfigError if a broker that shares no coordination tree expects other controllers."""
    reason = (
        _missing_controller(options.strings("process.roles"))
        or _other_voters(options.strings(VOTERS), options.integer("node.id"))
        or _other_servers(options.strings(_BOOTSTRAP), _controller_addresses(options))
    )
    if reason is not None:
        raise ConfigError(f"{reason}. {_REMEDY}")


def _missing_controller(roles: list[str]) -> str | None:
    if roles != ["broker"]:
        return None
    return (
        "process.roles=broker expects the KRaft controllers of other nodes, which Ottla does not "
        f"have, {_SEPARATE}; process.roles=broker,controller is a cluster of one broker"
    )


def _other_voters(voters: list[str], node_id: int) -> str | None:
    ids = []
    for text in voters:
        match = _VOTER.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"Invalid value {text} for configuration {VOTERS}: it must look like id@host:port"
            )
        ids.append(int(match[1]))
    if not ids or ids == [node_id]:
        return None
    named = ", ".join(map(str, ids))
    return f"{VOTERS} names the controllers {named}, but Ottla has no KRaft quorum, {_SEPARATE}"


def _other_servers(servers: list[str], own: list[tuple[str, str]]) -> str | None:
    if not servers or (len(servers) == 1 and _may_be_own(servers[0], own)):
        return None
    named = ",".join(servers)
    return f"{_BOOTSTRAP}={named} names other nodes, but Ottla has no KRaft quorum, {_SEPARATE}"


def _controller_addresses(options: Snapshot) -> list[tuple[str, str]]:
    """Return host and port of the controller's listeners, as bound and as advertised."""
    names = {name.upper() for name in options.strings("controller.listener.names")}
    return [
        (listener.host, str(listener.port))
        for option in ("listeners", "advertised.listeners")
        for listener in parse_listeners(options, option)
        if listener.name in names
    ]


def _may_be_own(server: str, own: list[tuple[str, str]]) -> bool:
    """Return False if an address is certainly not one of this node's."""
    host, _, port = server.rpartition(":")
    return not own or any(
        port == own_port and _may_be_same(host.strip("[]"), own_host) for own_host, own_port in own
    )


def _may_be_same(host: str, own: str) -> bool:
    if own in _WILDCARDS or host == own or (host in _LOOPBACK and own in _LOOPBACK):
        return True
    if _is_number(host) != _is_number(own):
        # A name may have this address.
        return True
    # A name may lack its domain.
    return not _is_number(host) and host.partition(".")[0] == own.partition(".")[0]


def _is_number(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()
