"""The connections of clients that are not known yet: bounded in all and for each address. Pure.

Everyone can open a connection, so strangers must not use up what known clients need. If there are
too many, a newcomer takes the place of the oldest one from the address that has the most, unless
its own address would then have more: then the newcomer is refused. An address that opens many
connections thus displaces its own. A crowd of which each comes from another address displaces none,
so that those in the middle of their authentication finish it.

Kafka has no such bounds; idle strangers use its max.connections for connections.max.idle.ms.
"""

from typing import Generic, NamedTuple, Protocol, TypeVar


class Stranger(Protocol):
    """A connection whose client may become known."""

    @property
    def is_stranger(self) -> bool:
        """True until the client is known."""
        ...


S = TypeVar("S", bound=Stranger)


class Bounds(NamedTuple):
    """The options `max.unauthenticated.connections` and `….per.ip`."""

    count_max: int = 1000
    per_host_max: int = 500


class Newcomers(Generic[S]):
    """The strangers in the order of their arrival, by address.

    Known ones are removed when they are in the way, so that becoming known costs nothing.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._by_host: dict[str, dict[S, None]] = {}
        self._count = 0
        # Newcomers that were refused, and older ones that had to leave for a newcomer.
        self.refused_count = self.displaced_count = 0

    def count(self) -> int:
        """Return the number of strangers."""
        self._remove_known(self._by_host)
        return self._count

    def arrive(self, stranger: S, host: str) -> S | None:
        """Count a newcomer; return the connection to close: another one, the newcomer, or None."""
        count_max, per_host_max = self.bounds
        if len(self._by_host.get(host, ())) >= per_host_max:
            self._remove_known((host,))
            if len(self._by_host.get(host, ())) >= per_host_max:
                return self._refuse(stranger)
        displaced = None
        if self._count >= count_max:
            self._remove_known(self._by_host)
            if self._count >= count_max:
                displaced = self._displace(host)
                if displaced is None:
                    return self._refuse(stranger)
        self._by_host.setdefault(host, {})[stranger] = None
        self._count += 1
        return displaced

    def leave(self, stranger: S, host: str) -> None:
        """Remove a connection that is lost; one that is not counted is ignored."""
        strangers = self._by_host.get(host)
        if strangers is not None and stranger in strangers:
            del strangers[stranger]
            self._count -= 1
            if not strangers:
                del self._by_host[host]

    def _refuse(self, stranger: S) -> S:
        self.refused_count += 1
        return stranger

    def _displace(self, newcomer_host: str) -> S | None:
        """Remove the oldest of the address with the most strangers, unless the newcomer's would
        then have more.
        """
        host = max(self._by_host, key=lambda one: len(self._by_host[one]), default=None)
        if host is None:
            return None
        strangers = self._by_host[host]
        if len(strangers) <= len(self._by_host.get(newcomer_host, ())) + 1:
            return None
        oldest = next(iter(strangers))
        self.leave(oldest, host)
        self.displaced_count += 1
        return oldest

    def _remove_known(self, hosts: "dict[str, dict[S, None]] | tuple[str, ...]") -> None:
        for host in list(hosts):
            strangers = self._by_host.get(host, {})
            for one in [one for one in strangers if not one.is_stranger]:
                self.leave(one, host)
