"""Sessions of commands with ZooKeeper: a host whose name is wrong ends a command at once.

A broker waits instead: the name may become known while its machine starts.
"""

import asyncio
from typing import Any

from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import EnsembleUnreachable


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
