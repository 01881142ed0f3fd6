"""Network namespaces: brokers on machines of their own, between which a test cuts the network.

The rules that cut are inside the namespaces, so that they end with them. Needs root on Linux.
"""

import contextlib
import subprocess
import uuid
from collections.abc import Iterator, Sequence

from tests.runs import needs

# Networks that are not routed (RFC 2544), of 254 machines each.
_NETWORKS = [f"198.{second}.{third}" for second in (18, 19) for third in range(256)]


class Machines:
    """Machines by number, each with an address; the test itself has the gateway's address."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._tag = uuid.uuid4().hex[:6]
        # Tests that run at the same time have networks of their own, too.
        network = _NETWORKS[int(self._tag, 16) % len(_NETWORKS)]
        self._gateway = f"{network}.1"
        self.numbers = tuple(numbers)
        self.addresses = {number: f"{network}.{10 + number}" for number in numbers}

    def prefix(self, number: int) -> list[str]:
        """Return the words in front of a command that runs on a machine."""
        return ["ip", "netns", "exec", self._name(number)]

    def _name(self, number: int) -> str:
        return f"ottla{self._tag}{number}"

    @property
    def _bridge(self) -> str:
        return f"br{self._tag}"

    def open(self) -> None:
        """Create the machines and the network; OSError or CalledProcessError if not permitted."""
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "address", "add", f"{self._gateway}/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")
        for number in self.numbers:
            name, outside = self._name(number), f"v{self._tag}{number}"
            _run("ip", "netns", "add", name)
            _run(
                "ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name
            )
            _run("ip", "link", "set", outside, "master", self._bridge, "up")
            inside = (*self.prefix(number), "ip")
            _run(*inside, "address", "add", f"{self.addresses[number]}/24", "dev", "eth0")
            _run(*inside, "link", "set", "eth0", "up")
            _run(*inside, "link", "set", "lo", "up")
            self.heal(number)

    def close(self) -> None:
        """Remove the machines and the network."""
        for number in self.numbers:
            with contextlib.suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "delete", self._name(number))
        with contextlib.suppress(subprocess.CalledProcessError):
            _run("ip", "link", "delete", self._bridge)

    def cut(self, number: int, *others: int, is_one_way: bool = False) -> None:
        """Drop what arrives at a machine from others; also what it sends unless `is_one_way`."""
        rules = (*self.prefix(number), "iptables", "-w", "-A")
        for other in others:
            _run(*rules, "INPUT", "-s", self.addresses[other], "-j", "DROP")
            if not is_one_way:
                _run(*rules, "OUTPUT", "-d", self.addresses[other], "-j", "DROP")

    def heal(self, *numbers: int) -> None:
        """Drop nothing at these machines."""
        for number in numbers:
            _run(*self.prefix(number), "iptables", "-w", "-F")


@contextlib.contextmanager
def machines(*numbers: int) -> Iterator[Machines]:
    """Yield machines that exist until the end of the block; skip the test without privileges."""
    result = Machines(numbers)
    try:
        try:
            result.open()
        except subprocess.CalledProcessError as error:
            needs.not_permitted("namespaces", error.stderr.decode())
        except OSError as error:
            needs.not_permitted("namespaces", str(error))
        yield result
    finally:
        result.close()


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=10)
