"""The sessions of other processes, stored as nodes, so that they outlive the process that serves.

    /zookeeper/sessions/0x100000001    {"timeout_ms":18000,"password_sha256":"…"}

The nodes are below ZooKeeper's own `/zookeeper`, which copies of a cluster's metadata leave out.
Only a hash of the password is stored: every client can read the tree.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import NamedTuple

PARENTS = ("/zookeeper", "/zookeeper/sessions")
_PREFIX = "/zookeeper/sessions/"


class StoredSession(NamedTuple):
    """The timeout in milliseconds, and the hash of the password that resumes the session."""

    timeout_ms: int
    password_sha256: str

    def accepts(self, password: bytes) -> bool:
        """Return True if this is the password of the session."""
        return hmac.compare_digest(hash_of(password), self.password_sha256)


def hash_of(password: bytes) -> str:
    """Return the hash that is stored for a password of random bytes."""
    return hashlib.sha256(password).hexdigest()


def path_of(session_id: int) -> str:
    """Return the path of the node that stores a session."""
    return f"{_PREFIX}{session_id:#x}"


def encode(stored: StoredSession) -> bytes:
    """Return the content of a session's node."""
    return json.dumps(stored._asdict(), separators=(",", ":")).encode()


def decode(data: bytes) -> StoredSession:
    """Return a session from the content of its node."""
    fields = json.loads(data)
    return StoredSession(int(fields["timeout_ms"]), str(fields["password_sha256"]))


def stored_ids(paths: Iterable[str]) -> set[int]:
    """Return the ids of the sessions that are stored in a tree with these paths."""
    return {int(path.removeprefix(_PREFIX), 16) for path in paths if path.startswith(_PREFIX)}
