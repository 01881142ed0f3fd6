"""Access control lists of nodes, which only a ZooKeeper has: who may do what with a node.

A list applies to its node alone, not to the nodes below it.
"""

from collections.abc import Callable
from typing import NamedTuple

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
ALL = READ | WRITE | CREATE | DELETE | ADMIN

# In the order of ZooKeeper's shell.
LETTERS = {"c": CREATE, "d": DELETE, "r": READ, "w": WRITE, "a": ADMIN}


class NodeAcl(NamedTuple):
    """The permissions of one user, or of all (`world`, `anyone`), as the sum of their bits.

    In a list to store, (`auth`, "") is the user of the session.
    """

    permissions: int
    scheme: str
    id: str


AclOf = Callable[[str], tuple[NodeAcl, ...]]
"""Returns the list for a node that is created at a path."""

_CREATOR = NodeAcl(ALL, "auth", "")
OPEN = (NodeAcl(ALL, "world", "anyone"),)
CREATOR_ONLY = (_CREATOR,)
READABLE = (_CREATOR, NodeAcl(READ, "world", "anyone"))


def letters(permissions: int) -> str:
    """Return the letters of permissions, as in `cdrwa`."""
    return "".join(letter for letter, bit in LETTERS.items() if permissions & bit)
