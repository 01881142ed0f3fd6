"""The clusters of the console by name."""

import threading

from ottla.base.errors import ConfigError, OttlaError
from ottla.operations.survey.connections import ClusterConnection


class UnknownCluster(OttlaError):
    """The catalogue has no cluster of this name."""


class ClusterCatalogue:
    """The clusters of the console by name, in the order of their addition; for any thread."""

    def __init__(self) -> None:
        self._connections: dict[str, ClusterConnection] = {}
        self._lock = threading.Lock()

    def add(self, connection: ClusterConnection) -> None:
        """Add a cluster; ConfigError if its name is in use."""
        with self._lock:
            if connection.name in self._connections:
                raise ConfigError(
                    f"there is already a cluster {connection.name!r}: choose another name"
                )
            self._connections[connection.name] = connection

    def remove(self, name: str) -> None:
        """Close and remove a cluster; UnknownCluster if there is none."""
        self.get(name).close()
        with self._lock:
            self._connections.pop(name, None)

    def get(self, name: str) -> ClusterConnection:
        """Return a cluster; UnknownCluster if there is none."""
        with self._lock:
            if name not in self._connections:
                known = ", ".join(self._connections) or "none"
                raise UnknownCluster(f"There is no cluster {name!r}. Known clusters: {known}.")
            return self._connections[name]

    def names(self) -> list[str]:
        """Return the names of all clusters."""
        with self._lock:
            return list(self._connections)

    def close(self) -> None:
        """Close every connection; idempotent."""
        with self._lock:
            connections = list(self._connections.values())
            self._connections.clear()
        for connection in connections:
            connection.close()
