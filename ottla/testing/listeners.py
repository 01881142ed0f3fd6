"""The listeners of the brokers of a test cluster: on free ports, which they keep after a restart."""

from collections.abc import Iterable, Sequence

from ottla.base.errors import OttlaError
from ottla.cluster.image import Endpoint

_DEFAULT = "PLAINTEXT://127.0.0.1:0"
_PLAIN = "PLAINTEXT"


class ClusterListeners:
    """The endpoints of each broker, in the order of its option `listeners`."""

    def __init__(self, brokers: Iterable[int]) -> None:
        self._endpoints: dict[int, Sequence[Endpoint]] = {number: () for number in brokers}

    def option(self, broker: int, requested: str | None) -> str:
        """Return a broker's option `listeners`: a port 0 is the port of its previous start."""
        ports = {endpoint.listener: endpoint.port for endpoint in self._endpoints[broker]}
        return ",".join(_on_known_port(text, ports) for text in (requested or _DEFAULT).split(","))

    def started(self, broker: int, endpoints: Sequence[Endpoint]) -> None:
        """Note where a broker listens."""
        self._endpoints[broker] = endpoints

    @property
    def first(self) -> Endpoint:
        """The first listener of the first broker."""
        return self._of_first[0]

    @property
    def plain(self) -> str:
        """The name of the first listener without security; of the first one if all are secured.

        Empty before the start.
        """
        secured = [item for item in self._of_first if item.security_protocol != _PLAIN]
        names = [item.listener for item in self._of_first if item not in secured]
        return next(iter([*names, *(item.listener for item in secured)]), "")

    def bootstrap(self, name: str) -> str:
        """Return the addresses of one listener of all brokers.

        Raises OttlaError if the brokers have no listener of this name.
        """
        found = [
            endpoint.address
            for endpoints in self._endpoints.values()
            for endpoint in endpoints
            if endpoint.listener == name.upper()
        ]
        if not found:
            names = ", ".join(endpoint.listener for endpoint in self._of_first)
            raise OttlaError(f"There is no listener {name}: the brokers have {names}.")
        return ",".join(found)

    @property
    def _of_first(self) -> Sequence[Endpoint]:
        return next(iter(self._endpoints.values()))


def _on_known_port(text: str, ports: dict[str, int]) -> str:
    name = text.partition("://")[0].strip().upper()
    is_free = text.rstrip().endswith(":0")
    return f"{text.rstrip()[:-1]}{ports[name]}" if is_free and name in ports else text
