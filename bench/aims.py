"""The figures of `bench.compare` and `bench.secured`: unit, better direction, and the aim."""

from typing import NamedTuple


class Aim(NamedTuple):
    """The aim of a figure: `bound` limits the ratio to Apache Kafka, or with `is_absolute` our own
    value.

    `better` is `more` or `less`: the ratio has to be at least, or at most, the bound.
    """

    unit: str
    better: str
    bound: float
    is_absolute: bool = False

    def is_met(self, ours: float, theirs: float) -> bool:
        """Return True if the medians of both meet the aim."""
        value = ours if self.is_absolute else ratio_of(ours, theirs)
        return value >= self.bound if self.better == "more" else value <= self.bound

    def __str__(self) -> str:
        """Return the aim as the tables show it."""
        sign = "≥" if self.better == "more" else "≤"
        return (
            f"{sign} {self.bound:g} {self.unit}" if self.is_absolute else f"{sign} {self.bound:g}"
        )


# More partitions in a response need more work for the same bytes, but not much more.
_SIX_TO_ONE = Aim("times", "less", 1.2, is_absolute=True)


def ratio_of(ours: float, theirs: float) -> float:
    """Return ours : theirs; infinite if theirs is 0."""
    return ours / theirs if theirs else float("inf")


def _load(name: str, unit: str, bound: float, cpu_unit: str, cpu_bound: float) -> dict[str, Aim]:
    """Return the aims of a rate and of the CPU time of the broker for it."""
    return {name: Aim(unit, "more", bound), f"{name} CPU": Aim(cpu_unit, "less", cpu_bound)}


def _requests() -> dict[str, Aim]:
    aims = {}
    for depth in (1, 5):
        for version in (3, 7, 9):
            name = f"tiny 10x{depth} v{version}"
            aims |= _load(name, "requests/s", 2.0, "us/request", 0.4)
            aims[f"{name} p99"] = Aim("us", "less", 0.5)
    for version in (7, 9):
        name = f"one in flight 1 KB v{version}"
        aims[f"{name} p50"] = Aim("us", "less", 0.7)
        aims[f"{name} p99"] = Aim("us", "less", 0.5)
        aims |= _load(f"batches 16 KB v{version}", "MB/s", 1.3, "s/GB", 0.5)
    aims |= _load("batches 900 KB v9", "MB/s", 1.5, "s/GB", 0.5)
    for partitions in (1, 6):
        aims |= _load(f"fetch 1 MB, {_partitions(partitions)}", "MB/s", 1.0, "s/GB", 0.7)
    aims["fetch 1 MB, CPU of six partitions to one"] = _SIX_TO_ONE
    small = [("record", version) for version in (4, 11, 12)]
    for size, version in (*small, ("small batch", 11), ("small batch", 12)):
        name = f"fetch one {size} v{version}"
        aims |= _load(name, "requests/s", 1.5, "us/request", 0.6)
    aims |= _load("fetch of 100 partitions", "requests/s", 1.5, "us/request", 0.6)
    for name in (
        "long poll of 2 000 partitions",
        "long poll in a session",
        "long poll of one partition",
    ):
        aims[f"{name} p50"] = Aim("us", "less", 1.0)
        aims[f"{name} CPU"] = Aim("us/wake-up", "less", 0.6)
    aims["memory of 1 500 readers that never read"] = Aim("MB", "less", 150, is_absolute=True)
    aims["metadata of 100 topics"] = Aim("requests/s", "more", 2.0)
    return aims


def _partitions(count: int) -> str:
    return f"{count} partition{'s' if count > 1 else ''}"


def _clients() -> dict[str, Aim]:
    aims = {}
    for size in ("1 KB", "100 B"):
        for partitions in (1, 6):
            name = f"produce {size}, {_partitions(partitions)}"
            aims |= _load(name, "MB/s", 1.0, "s/GB", 0.6)
        for partitions in (1, 6, 100):
            name = f"consume {size}, {_partitions(partitions)}"
            aims |= _load(name, "MB/s", 1.1, "s/GB", 0.7)
        aims[f"consume {size}, CPU of six partitions to one"] = _SIX_TO_ONE
    for codec in ("lz4", "zstd"):
        for kind in ("produce", "consume"):
            aims |= _load(f"{kind} 1 KB {codec}", "MB/s", 1.0, "s/GB", 0.7)
    return aims | _load("consume 1 KB, cold", "MB/s", 1.0, "s/GB", 1.0)


def _secured() -> dict[str, Aim]:
    """Return the aims of `bench.secured`."""
    aims: dict[str, Aim] = {}
    for name in ("batches 900 KB", "fetch 1 MB", "produce 1 KB", "consume 1 KB"):
        aims |= _load(f"TLS {name}", "MB/s", 0.8, "s/GB", 1.0)
    for key in ("ECDSA P-256", "RSA 2048"):
        aims |= _load(f"TLS handshakes, {key}", "/s", 1.0, "us", 1.0)
    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        aims |= _load(f"{mechanism} logins", "/s", 1.0, "us", 1.0)
    # The aim is at most 5 % more than without an authorizer.
    for kind in ("produce", "fetch"):
        aims |= _load(f"tiny {kind} with an authorizer", "requests/s", 1.0, "us/request", 1.0)
        name = f"tiny {kind}, CPU with an authorizer to without"
        aims[name] = Aim("times", "less", 1.05, is_absolute=True)
    return aims


AIMS: dict[str, Aim] = {
    **_requests(),
    **_clients(),
    "start to first acknowledged produce": Aim("s", "less", 0.15),
    "idle memory": Aim("MB", "less", 0.15),
    "memory with 1 000 partitions": Aim("MB", "less", 0.25),
    "clean stop with 1 000 partitions": Aim("s", "less", 1.0),
    "memory after the load": Aim("MB", "less", 0.15),
    "transactions of 1 record": Aim("/s", "more", 1.0),
    "transactions of 1 record p99": Aim("ms", "less", 1.0),
    "transactions of 100 records": Aim("/s", "more", 1.0),
    "transactions of 100 records p99": Aim("ms", "less", 1.0),
    "group of five joins (classic)": Aim("s", "less", 1.0),
    "one of five leaves (classic)": Aim("s", "less", 1.0),
    "group of five joins (consumer)": Aim("s", "less", 1.0),
    "one of five leaves (consumer)": Aim("s", "less", 1.0),
    "new group to first record": Aim("s", "less", 0.5),
    "end to end p50": Aim("us", "less", 0.8),
    "end to end p99": Aim("us", "less", 0.8),
    "1 000 partitions until each took a record": Aim("s", "less", 0.5),
    "1 000 partitions deleted": Aim("s", "less", 1.0),
    "connections": Aim("/s", "more", 0.5),
    **_secured(),
}
