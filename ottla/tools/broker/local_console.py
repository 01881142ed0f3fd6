"""The console of `ottla up --console`: its socket, and a thread that imports and starts it.

The brokers start first: the console is imported when they are ready, outside their event loop.
"""

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.loading import load
from ottla.server.node import Node
from ottla.tools.output import Output

if TYPE_CHECKING:
    from ottla.security.zookeeper.login import Login

CLUSTER_NAME = "local"
_CONFIGURATION = "ottla.console.configuration"
_MODULE = "ottla.tools.console.running"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster that the console shows; `http_urls` are the brokers' HTTP ports by node id.

    `options` are client options for the listener at `bootstrap`. `zookeeper_login` is the user of a
    tree that brokers share.
    """

    bootstrap: str
    http_urls: Mapping[int, str]
    zookeeper: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    zookeeper_login: "Login | None" = field(default=None, repr=False)


@dataclass(slots=True)
class LocalConsole:
    """The console from the command line to its end; does nothing after a failure."""

    listener: socket.socket
    data: str
    host: str
    is_read_only: bool
    is_insecure: bool
    output: Output
    # The name of the brokers' listener that it uses, and its options of a client there.
    broker_listener: str
    client_options: Mapping[str, str] = field(repr=False)
    schema_registry: str = ""
    _thread: threading.Thread | None = field(default=None, init=False)
    _console: Any = field(default=None, init=False)

    def start(self, facts: ClusterFacts) -> None:
        """Start the console in a thread and return at once."""
        self._thread = threading.Thread(target=self._run, args=(facts,), name="ottla-console-start")
        self._thread.start()

    def stop(self) -> None:
        """Stop the console, also one that starts; idempotent."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._console is not None:
            self._console.stop()
            self._console = None
        self.listener.close()

    def _run(self, facts: ClusterFacts) -> None:
        settings = load("ottla.operations.survey.connections", "ClusterSettings")
        options = load(_MODULE, "LocalConsoleOptions")
        cluster = settings(
            CLUSTER_NAME,
            facts.bootstrap,
            facts.options,
            zookeeper=facts.zookeeper,
            zookeeper_login=facts.zookeeper_login,
            http_urls=facts.http_urls,
            schema_registry=self.schema_registry,
        )
        self._console = load(_MODULE, "LocalConsoleServer")(
            options(self.listener, self.data, self.host, self.is_read_only, self.is_insecure),
            self.output,
            cluster,
        )
        self._console.start()


def open_local_console(
    options: Mapping[str, Any], data: str, output: Output, settings: Mapping[str, str]
) -> LocalConsole | None:
    """Return the console that the options ask for, listening already, or None.

    OttlaError if its port is taken, if others can reach its address and that is not allowed, or if
    it can use no listener of brokers with these `settings`: the brokers are not started then.
    """
    if not options["console"]:
        if options["console_schema_registry"]:
            raise OttlaError("--console-schema-registry is for the console: add --console")
        return None
    registry = _registry(options["console_schema_registry"])
    chosen = load("ottla.tools.console.listener", "choose")(settings)
    host, port = options["console_host"], options["console_port"]
    is_insecure = options["console_insecure"]
    configuration = load(_CONFIGURATION, "read_configuration")(Path(data))
    load(_CONFIGURATION, "check_address")(
        host, allows_insecure=is_insecure or configuration.allows_insecure
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OttlaError(
            f"the console cannot listen on {host}:{port} ({error.strerror}): choose another port "
            "with --console-port"
        ) from error
    is_read_only = options["console_read_only"]
    return LocalConsole(
        listener,
        data,
        host,
        is_read_only,
        is_insecure,
        output,
        chosen.name,
        chosen.options,
        registry,
    )


def _registry(url: str | None) -> str:
    if url is None:
        return ""
    if not url.startswith(("http://", "https://")):
        raise OttlaError(
            f"--console-schema-registry {url} is not an address, as http://127.0.0.1:8081 is"
        )
    return url.rstrip("/")


def facts_of(
    local_console: LocalConsole, nodes: Sequence[Node], zookeeper: str | None
) -> ClusterFacts:
    """Return the facts of brokers that run in this process."""
    endpoints = [
        endpoint
        for node in nodes
        for endpoint in node.advertised_endpoints
        if endpoint.listener == local_console.broker_listener
    ]
    bootstrap = ",".join(endpoint.address for endpoint in endpoints)
    urls = {
        node.node_id: "http://{}:{}".format(*node.monitoring_address)
        for node in nodes
        if node.monitoring_address
    }
    return ClusterFacts(bootstrap, urls, zookeeper, local_console.client_options)
