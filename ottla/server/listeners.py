"""The listeners of one broker: opened together, limited together, and closed together."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem, lent_count
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster import image
from ottla.cluster.options import admission_options, option_tables
from ottla.cluster.options.option_rows import limits_by_host
from ottla.cluster.options.security.exposure import reached
from ottla.cluster.options.security_options import ListenerSecurity, security_of
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import FrameHandler
from ottla.net.descriptors import DescriptorLimit
from ottla.net.endpoint import Endpoint, Rooms
from ottla.net.limits import Limits
from ottla.net.port import Net, SocketBuffers, remedy
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.unsent import UnsentBudget
from ottla.security.broker_proof import ProofToPeer
from ottla.server.audit.log import AuditLog
from ottla.server.authentication.identity import LoginCounts
from ottla.server.monitoring.process import open_count
from ottla.server.monitoring.sources import Sources
from ottla.server.quotas.clients import ClientQuotas
from ottla.storage.directories.disk import LogDirectories

if TYPE_CHECKING:
    import ssl

    from ottla.net.admission import attempts, handshakes
    from ottla.server.authentication import gate
else:
    # Only a broker with TLS or SASL needs them.
    attempts = deferred_module("ottla.net.admission.attempts")
    handshakes = deferred_module("ottla.net.admission.handshakes")
    gate = deferred_module("ottla.server.authentication.gate")

_log = logging.getLogger(__name__)

# How long the broker waits for pending responses when it stops, in seconds.
DRAIN_SECONDS = 5.0
_NEVER_SECONDS = 10.0**9
# How many requests one log line names as possible causes of a blocked event loop.
_NAMED_MAX = 5
# Bytes of unsent responses in memory above which fetches return less. Half as much above it,
# connections that do not read are closed.
_UNSENT_BYTES_MAX = 256 * 1024**2
# OpenSSL's reasons for handshakes that fail because of the certificate of the client.
_CERTIFICATE_REASONS = ("CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE")
_OVERRIDES = "max.connections.per.ip.overrides"


class Listeners:
    """The endpoints of a broker, in the order of the option `listeners`."""

    def __init__(self, static: Snapshot) -> None:
        self.endpoints: list[Endpoint] = []
        self._static = static
        # The options as of now, if one of them was changed.
        self._options = static
        # The addresses of the hosts in max.connections.per.ip.overrides.
        self._addresses: dict[str, list[str]] = {}
        self._parsed = option_tables.parse_listeners(static)
        self.security: Mapping[str, ListenerSecurity] = {
            listener.name: security_of(static, listener) for listener in self._parsed
        }
        self.logins = {name: LoginCounts() for name in self.security}
        self._attempts: attempts.Attempts | None = None
        self._rooms = Rooms(admission_options.bounds_of(static))
        # The addresses of advertised.listeners, by listener name.
        self.advertised: Mapping[str, tuple[str, int]] = {
            listener.name: (listener.host, listener.port)
            for listener in option_tables.parse_listeners(static, "advertised.listeners")
        }

    @property
    def connections_count(self) -> int:
        """The number of connected clients."""
        return sum(endpoint.connections_count for endpoint in self.endpoints)

    async def open(
        self,
        directories: LogDirectories,
        quotas: ClientQuotas,
        sources: Sources,
        *,
        net: Net,
        files: FileSystem,
        tasks: Tasks,
    ) -> None:
        """Bind every address, without handling requests yet.

        Raises ConfigError if an address is in use.
        """
        budget_bytes = self._static.integer("queued.max.request.bytes")
        budget = ReceiveBudget(budget_bytes if budget_bytes > 0 else 2**63)
        unsent, buffers = UnsentBudget(_UNSENT_BYTES_MAX), ReceiveBuffers()
        by_host: Counter[str] = Counter()
        descriptors = DescriptorLimit(
            lambda: len(directories.logs()) + lent_count(), open_count(files)
        )
        sources.descriptors = descriptors
        sources.budget, sources.endpoints = budget, self.endpoints
        sources.logins = {
            name: counts
            for name, counts in self.logins.items()
            if self.security[name].mechanisms or self.security[name].tls is not None
        }
        certificates = sources.certificates
        for listener in self._parsed:
            tls = None if certificates is None else certificates.server(listener.name)
            endpoint = Endpoint(
                listener.name,
                limits=self._limits(listener.name, self._static),
                budget=budget,
                unsent=unsent,
                buffers=buffers,
                tasks=tasks,
                tls=tls,
            )
            endpoint.is_gated = self._is_gated(listener.name)
            endpoint.rooms = self._rooms
            if tls is not None:
                pace = admission_options.pace_of(self._static)
                endpoint.handshake_order = handshakes.HandshakeOrder(pace)
            endpoint.count_hosts_in(by_host)
            endpoint.limit_descriptors(descriptors)
            endpoint.throttle_ms = quotas.connection_throttle_ms
            try:
                await endpoint.open(net, listener.host, listener.port)
            except OSError as error:
                raise ConfigError(
                    f"Cannot listen on {listener.host}:{listener.port}: {error.strerror or error}. "
                    f"{remedy(error, 'choose another port (0 selects a free one)')}."
                ) from error
            self.endpoints.append(endpoint)
        if certificates is not None:
            certificates.on_renewed = self._renew_tls

    def _renew_tls(self, name: str, context: "ssl.SSLContext") -> None:
        for endpoint in self.endpoints:
            if endpoint.name == name:
                endpoint.renew_tls(context)

    def serve(self, handler: FrameHandler, now: Callable[[], float], audit: AuditLog) -> None:
        """Start to handle requests; `now` returns the monotonic time in seconds."""
        for endpoint in self.endpoints:
            endpoint.on_failed_handshake = partial(self._handshake_failed, endpoint.name, audit)
            if not self.security[endpoint.name].mechanisms:
                # With SASL, a client has authenticated after the exchange.
                endpoint.on_handshake = partial(self.logins[endpoint.name].succeed, None, 0.0)
            endpoint.serve(self._gate(endpoint.name, handler, now, audit) or handler)

    def _handshake_failed(self, name: str, audit: AuditLog, address: str, reason: str) -> None:
        """Count a failure as Kafka does; a client that has no trusted certificate is audited."""
        self.logins[name].fail(is_renewal=False)
        if reason in _CERTIFICATE_REASONS:
            audit.handshake_failed(name, address, reason)

    def _gate(
        self, name: str, handler: FrameHandler, now: Callable[[], float], audit: AuditLog
    ) -> "gate.Gate | None":
        """Return the gate of a listener whose clients have a name; None if clients have no name."""
        if not self._is_gated(name):
            return None
        options = self._static
        if self._attempts is None:
            # All listeners share them.
            self._attempts = attempts.Attempts(admission_options.attempts_of(options))
        return gate.Gate(
            handler,
            self.security[name],
            gate.AuthenticationLimits(
                options.integer("sasl.server.max.receive.size"),
                options.integer("socket.request.max.bytes"),
                options.integer("connection.failed.authentication.delay.ms") / 1000,
            ),
            now,
            self.logins[name],
            lambda connection, login: audit.login_failed(connection, None, login),
            self._attempts,
        )

    def _is_gated(self, name: str) -> bool:
        """Return True if the clients of a listener have names."""
        security = self.security[name]
        has_certificates = security.tls is not None and security.tls.client_auth != "none"
        return bool(security.mechanisms) or has_certificates

    def advertised_endpoints(self) -> list[image.Endpoint]:
        """Return the addresses at which clients and other brokers reach the listeners."""
        return [self._advertise(endpoint) for endpoint in self.local_endpoints()]

    def _advertise(self, endpoint: image.Endpoint) -> image.Endpoint:
        host, port = self.advertised.get(endpoint.listener, (endpoint.host, endpoint.port))
        return endpoint._replace(host=reached(host), port=port)

    def local_endpoints(self) -> list[image.Endpoint]:
        """Return the addresses at which the listeners are reached from this machine."""
        protocols = {listener.name: listener.protocol for listener in self._parsed}
        return [
            image.Endpoint(
                endpoint.name, reached(endpoint.host), endpoint.port, protocols[endpoint.name]
            )
            for endpoint in self.endpoints
        ]

    def limit(self, options: Snapshot, net: Net, tasks: Tasks) -> None:
        """Apply changed limits of connections; the hosts' limits when their names are resolved."""
        self._options = options
        self._apply_limits()
        hosts = limits_by_host(options.text(_OVERRIDES))
        if hosts:
            tasks.spawn(self._resolve(hosts, net), f"hosts of {_OVERRIDES}")

    async def _resolve(self, hosts: Iterable[str], net: Net) -> None:
        for host in hosts:
            try:
                self._addresses[host] = await net.resolve(host)
            except OSError as error:
                _log.warning("limit of an unknown host ignored host=%s error=%s", host, error)
        self._apply_limits()

    def _apply_limits(self) -> None:
        self._rooms.bound(admission_options.bounds_of(self._options))
        for endpoint in self.endpoints:
            endpoint.limits = self._limits(endpoint.name, self._options)

    def _limits(self, name: str, options: Snapshot) -> Limits:
        """Return the limits of connections; a client that is not known yet sends small requests."""
        limits = replace(
            connection_limits(options),
            connections_by_host_max={
                address: number
                for host, number in limits_by_host(options.text(_OVERRIDES)).items()
                for address in self._addresses.get(host, ())
            },
        )
        if not self.security[name].mechanisms:
            return limits
        largest = min(limits.frame_bytes_max, options.integer("sasl.server.max.receive.size"))
        return replace(limits, frame_bytes_max=largest)

    def requests_since(self, since: float) -> str:
        """Name a few of the requests that may have been handled since the given time."""
        active = [
            connection for endpoint in self.endpoints for connection in endpoint.active_since(since)
        ]
        headers = [connection.memo for connection in active if connection.memo is not None]
        names = {f"{header.route.row.handler.API.name} of {header.client_id}" for header in headers}
        return ", ".join(sorted(names)[:_NAMED_MAX])

    def disconnect_brokers(self, generation: int) -> None:
        """Close the connections of brokers that use this generation of the secret, or an earlier
        one.
        """
        for endpoint in self.endpoints:
            for connection in endpoint.active_since(float("-inf")):
                proof = connection.identity
                if isinstance(proof, ProofToPeer) and 0 <= proof.generation <= generation:
                    connection.close("the secret of the broker has been replaced")

    async def stop_accepting(self) -> None:
        """Refuse new connections."""
        for endpoint in self.endpoints:
            await endpoint.stop_accepting()

    async def close(self) -> None:
        """Close the connections, after pending responses have been sent or 5 s have passed."""
        await asyncio.gather(*(endpoint.close(DRAIN_SECONDS) for endpoint in self.endpoints))

    def hurry(self) -> None:
        """Stop waiting for pending responses."""
        for endpoint in self.endpoints:
            endpoint.hurry()


def connection_limits(options: Snapshot) -> Limits:
    """Return the limits of connections from the broker options."""
    idle_ms = options.integer("connections.max.idle.ms")
    return Limits(
        frame_bytes_max=options.integer("socket.request.max.bytes"),
        idle_seconds=idle_ms / 1000 if idle_ms > 0 else _NEVER_SECONDS,
        authentication_seconds=options.integer("authentication.timeout.ms") / 1000,
        connections_max=options.integer("max.connections"),
        connections_per_host_max=options.integer("max.connections.per.ip"),
        socket_buffers=SocketBuffers(
            options.integer("socket.send.buffer.bytes"),
            options.integer("socket.receive.buffer.bytes"),
        ),
    )
