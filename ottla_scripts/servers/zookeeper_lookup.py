"""The brokers behind `--zookeeper host:2181/chroot`, which Apache Kafka 3.0 removed from its tools.

Loaded only if the option is used: the client of ZooKeeper takes longer than the rest of a script.
"""

import asyncio
from collections.abc import Sequence

from ottla.base.errors import OttlaError
from ottla.cluster.zk.port import NoNode
from ottla.cluster.znodes import BrokerIdNode, BrokerIdsNode
from ottla.tools.zookeeper.sessions import begin
from ottla.tools.zookeeper.tls_files import tls_options
from ottla_scripts.printing import err
from ottla_scripts.session import read_properties

_CONNECT_MS = 10_000
_TLS_FILE = "zk-tls-config-file"
# Options with a file of the client, which has the protocol of the brokers' listener.
_CLIENT_FILES = (
    "command-config",
    "consumer.config",
    "producer.config",
    "admin.config",
    "config-file",
)


def replace_zookeeper(
    command_line: Sequence[str], at: int, bootstrap_names: Sequence[str]
) -> list[str]:
    """Replace the ZooKeeper at a position by the brokers that are registered there.

    `bootstrap_names` are the options that name brokers: with one of them ZooKeeper is not needed.
    """
    address, remaining = _take(command_line, at)
    if address is None:
        return list(command_line)
    tls_file, remaining = _option(remaining, _TLS_FILE)
    if any(_option(remaining, name)[0] is not None for name in bootstrap_names):
        err("Option --zookeeper is ignored: --bootstrap-server names the brokers.")
        return remaining
    files = (_option(remaining, name)[0] for name in _CLIENT_FILES)
    settings = next((read_properties(path) for path in files if path), {})
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    brokers = find_brokers(address, protocol, tls_file)
    typed = command_line[at].lstrip("-").partition("=")[0]
    err(f"Option --{typed} is from an earlier version; use --bootstrap-server {brokers} instead.")
    return [*remaining, "--bootstrap-server", brokers]


def find_brokers(connect: str, protocol: str, tls_file: str | None) -> str:
    """Return the addresses of the listeners with a protocol, as for --bootstrap-server."""
    return asyncio.run(_find(connect, protocol, tls_options(tls_file)))


async def _find(connect: str, protocol: str, tls: dict[str, str]) -> str:
    try:
        session = await begin(
            connect, connect_timeout_ms=_CONNECT_MS, creates_path=False, tls_options=tls
        )
    except OttlaError as error:
        raise OttlaError(f"{error}; or name the brokers with --bootstrap-server") from error
    try:
        addresses = []
        for name in sorted(await session.children(BrokerIdsNode.PATH), key=int):
            data, stat = await session.get(BrokerIdNode.path(int(name)))
            broker = BrokerIdNode.decode(int(name), data, stat.czxid)
            listeners = [
                item for item in broker.every_endpoint() if item.security_protocol == protocol
            ]
            addresses += [f"{item.host}:{item.port}" for item in listeners[:1]]
    except NoNode:
        addresses = []
    finally:
        await session.close()
    if not addresses:
        raise OttlaError(
            f"no broker with a {protocol} listener is registered in {connect}: name the brokers with "
            "--bootstrap-server, and security.protocol in the file of --command-config"
        )
    return ",".join(addresses)


def _option(command_line: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """Return the value of an option, None if it is missing, and the other words."""
    forms = (f"-{name}", f"--{name}")
    for at, word in enumerate(command_line):
        if word.partition("=")[0] in forms:
            return _take(command_line, at)
    return None, list(command_line)


def _take(command_line: Sequence[str], at: int) -> tuple[str | None, list[str]]:
    """Return the value of the option at a position, and the other words."""
    _, has_value, value = command_line[at].partition("=")
    if has_value:
        return value, [*command_line[:at], *command_line[at + 1 :]]
    if at + 1 == len(command_line):
        return None, list(command_line)
    return command_line[at + 1], [*command_line[:at], *command_line[at + 2 :]]
