"""Sends hostile cases to a broker, one after the other, and checks the effects of each.

`python -m tests.robustness.attack [--cases N] [--seed N]` starts a broker and a client that
produces all the time, sends the cases, and prints their cost. Exit code 1 if a limit was exceeded.
"""

import argparse
import socket
import struct
import sys
import time
from collections import Counter
from itertools import islice

from bench.observed import ObservedBroker, Reading
from bench.pauses import Neighbour
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.wire import headers
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.robustness.hostile import TOPIC, Case, Hostile

# The limits of a case's effects on a broker.
ANSWERED, CLOSED, SILENT = "answered", "closed", "silent"
PAUSE_MS_MAX = 100.0
RSS_MIB_MAX = 64.0
# Lines of the log: repeated ones are limited by time, not by the number of events.
LINES_PER_SECOND_MAX = 20
SETTINGS = {
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "log.retention.ms": "-1",
    # Waiting rebalances are not tested here.
    "group.initial.rebalance.delay.ms": "0",
}
# Some responses are late by design: rebalances, long polls.
_PATIENCE_S = 0.1
_SENTINEL = -123456


class Attacker:
    """Opens one connection after the other, as the broker closes them."""

    def __init__(self, port: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self._port = port
        self._socket: socket.socket | None = None
        body = headers.encode_request(ApiVersionsRequest(), 0, _SENTINEL, None)
        self._sentinel = struct.pack(">i", len(body)) + body

    def play(self, case: Case) -> str:
        """Send a case, and after it a request that must get a response if the connection is still
        open.
        """
        outcome = self._play(case)
        self.outcomes[outcome] += 1
        return outcome

    def _play(self, case: Case) -> str:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), 5)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(_PATIENCE_S)
        try:
            self._socket.sendall(case.data + self._sentinel if case.is_whole else case.data)
            if not case.is_whole:
                # The peer disconnects in the middle of a request.
                self.close()
                return SILENT
            while self._read_correlation_id() != _SENTINEL:
                pass
        except TimeoutError:
            self.close()
            return SILENT
        except (ConnectionError, EOFError):
            self.close()
            return CLOSED
        return ANSWERED

    def _read_correlation_id(self) -> int:
        (size,) = struct.unpack(">i", self._read(4))
        body = self._read(size)
        return int.from_bytes(body[:4], "big", signed=True)

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Verdict:
    """The effects of an attack on a broker; `complaints` is empty if no limit was exceeded."""

    def __init__(self, before: Reading, after: Reading, seconds: float, lines: list[str]) -> None:
        self.pause_ms = min(after.lag_ms, after.cpu_ms)
        self.rss_mib = after.rss_mib - before.rss_mib
        self.lines_count = len(lines)
        self.complaints = []
        if self.pause_ms > PAUSE_MS_MAX:
            self.complaints.append(f"the loop stopped for {self.pause_ms:.0f} ms: {after.stack}")
        if self.rss_mib > RSS_MIB_MAX:
            self.complaints.append(f"memory grew by {self.rss_mib:.0f} MiB")
        if len(lines) > 50 + seconds * LINES_PER_SECOND_MAX:
            self.complaints.append(f"{len(lines)} lines of log in {seconds:.0f} s")
        bugs = [line for line in lines if "Traceback" in line or "Fatal" in line]
        if bugs:
            at = lines.index(bugs[0])
            self.complaints.append("\n".join(lines[max(0, at - 3) : at + 40]))
        if after.held_bytes or after.unsent_bytes:
            self.complaints.append(f"{after.held_bytes} + {after.unsent_bytes} bytes are held")


def attack(broker: ObservedBroker, cases: int, seed: int) -> tuple[Verdict, Attacker, Neighbour]:
    """Send cases while another client is served."""
    with Brokers(f"127.0.0.1:{broker.port}") as admin:
        topics.create_topic(admin, TOPIC, partitions=1)
    neighbour = Neighbour(broker.port, TOPIC)
    attacker = Attacker(broker.port)
    # Memory that is allocated at the first use (codecs of all versions) is not caused by the
    # attack.
    for case in islice(Hostile(seed + 1).cases(), 2000):
        attacker.play(case)
    attacker.outcomes.clear()
    count, before = len(broker.lines()), broker.take()
    begin = time.monotonic()
    for number, case in enumerate(islice(Hostile(seed).cases(), cases)):
        attacker.play(case)
        assert number % 1000 or broker.is_alive(), f"ended after {case}"
    seconds = time.monotonic() - begin
    attacker.close()
    neighbour.stop()
    return Verdict(before, broker.take(), seconds, broker.lines()[count:]), attacker, neighbour


def main() -> None:
    """Attack a broker and print the effects."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ObservedBroker(SETTINGS) as broker:
        begin = time.monotonic()
        verdict, attacker, neighbour = attack(broker, options.cases, options.seed)
        rows = sorted(neighbour.latencies)
        print(
            f"{options.cases} cases in {time.monotonic() - begin:.0f} s: {dict(attacker.outcomes)}; "
            f"longest pause {verdict.pause_ms:.0f} ms, memory +{verdict.rss_mib:.0f} MiB, "
            f"{verdict.lines_count} lines of log; the good client: {len(rows)} records, "
            f"p50 {rows[len(rows) // 2]:.2f}, p99 {rows[int(len(rows) * 0.99)]:.2f}, "
            f"max {rows[-1]:.1f} ms"
        )
        for complaint in verdict.complaints:
            print("BROKEN:", complaint)
        begin = time.monotonic()
        code = broker.stop()
        print(f"stopped with {code} in {time.monotonic() - begin:.1f} s")
    sys.exit(bool(verdict.complaints or code))


if __name__ == "__main__":
    main()
