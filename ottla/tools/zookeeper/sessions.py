"""Sessions of commands with ZooKeeper: a host whose name is wrong ends a command at once.

A broker waits instead: the name may become known while its machine starts.
"""

import asyncio
from typing import Any

from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import EnsembleUnreachable

_PORT = 2181
_CONNECT_S = 2.0


async def begin(connect: str, **settings: Any) -> LiveSession:
    """Start a session, as `LiveSession.begin`; EnsembleUnreachable if no host is known."""
    await _check_hosts(connect.partition("/")[0].split(","))
    return await LiveSession.begin(connect, **settings)


async def _check_hosts(servers: list[str]) -> None:
    for server in servers:
        host = server.strip().rpartition(":")[0] or server.strip()
        try:
            await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), None)
        except OSError as error:
            reason = error.strerror
        except UnicodeError:
            # The session reports a text that is no name at all.
            return
        else:
            return
    names = ",".join(servers)
    raise EnsembleUnreachable(
        f"ZooKeeper's host is not known: {names} ({reason}). Correct the name, as in "
        "HOST:PORT[,HOST:PORT…][/PATH]"
    )


async def check_listeners(connect: str) -> None:
    """Raise EnsembleUnreachable at once if no server of an ensemble listens."""
    servers = connect.partition("/")[0].split(",")
    for server in servers:
        host, _, port = server.strip().rpartition(":")
        if not (host and port.isdecimal()):
            host, port = server.strip(), str(_PORT)
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writer.close()
        except ConnectionRefusedError:
            continue
        except (OSError, ValueError, OverflowError):
            # The session reports any other failure, after its own time-out.
            return
        else:
            return
    raise EnsembleUnreachable(
        f"nothing listens on {','.join(servers)}: name ZooKeeper's address with --connect. Brokers "
        "that coordinate themselves (`ottla up`) open no port for that by default: start one with "
        "-o coordination.listener=127.0.0.1:2181"
    )
