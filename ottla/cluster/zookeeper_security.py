"""Set the access control lists of the nodes that a ZooKeeper has already: a migration.

Follows kafka.admin.ZkSecurityMigrator. The node / and all nodes of a cluster get a list; roots that
are missing are created, so that no other user can create them. A migration can be repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.cluster.secured_znodes import NOT_CREATED, OTTLA_ROOT, SECURE_ROOTS
from ottla.cluster.zk.acls import AclOf
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import NoNode
from ottla.cluster.zk.tree import ROOT

# The requests that are sent together; each node needs two.
_NODES_AT_ONCE = 200


async def missing_roots(session: LiveSession) -> list[str]:
    """Return the roots of Apache Kafka that do not exist: many, if the path is a wrong one."""
    stats = await asyncio.gather(*map(session.exists, SECURE_ROOTS))
    return [path for path, stat in zip(SECURE_ROOTS, stats, strict=True) if stat is None]


async def set_lists(
    session: LiveSession, acl_of: AclOf, on_root: Callable[[], Awaitable[None]] | None = None
) -> int:
    """Set the lists of all nodes, and return their number; NoAuth, or NoNode without the path.

    `on_root` is called after the node /, before anything else. `acl_of` is also the session's,
    which creates the roots that are missing.
    """
    await session.set_acl(ROOT, acl_of(ROOT))
    if on_root is not None:
        await on_root()
    for path in SECURE_ROOTS:
        if path not in NOT_CREATED:
            await session.ensure(path)
    count, waiting = 1, [*filter(_is_highest, SECURE_ROOTS), OTTLA_ROOT]
    while waiting:
        now, waiting = waiting[:_NODES_AT_ONCE], waiting[_NODES_AT_ONCE:]
        for below in await asyncio.gather(*(_set(session, path, acl_of) for path in now)):
            count += below is not None
            waiting += below or ()
    return count


def _is_highest(path: str) -> bool:
    """Return False for a root below another one, which is one of its children."""
    return not any(path.startswith(f"{root}/") for root in SECURE_ROOTS)


async def _set(session: LiveSession, path: str, acl_of: AclOf) -> list[str] | None:
    """Set the list of a node, and return its children; None if the node does not exist."""
    try:
        await session.set_acl(path, acl_of(path))
        return [f"{path}/{name}" for name in await session.children(path)]
    except NoNode:
        # A root that is not created, or a node that another client has deleted.
        return None
