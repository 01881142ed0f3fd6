"""The work of `ottla console`, and the console beside the brokers of `ottla up --console`."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError, OttlaError
from ottla.console.accounts.database import FILE_NAME, Database
from ottla.console.accounts.passwords import one_time_password
from ottla.console.accounts.sessions import Sessions
from ottla.console.accounts.users import FIRST_USER, Users
from ottla.console.alerts.rules import FIRST_RULES
from ottla.console.configuration import is_loopback, read_configuration
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.tools import profiles
from ottla.tools.connection.client_config import read_options
from ottla.tools.output import Output, note
from ottla.tools.text_files import is_number

_PASSWORD_VARIABLE = "OTTLA_CONSOLE_PASSWORD"  # noqa: S105 - the name of a variable


def run(
    output: Output,
    clusters: Sequence[str],
    client_configs: Mapping[str, str],
    zookeepers: Mapping[str, str],
    http_urls: Mapping[str, str],
    data: str,
    reset_password: str | None,
    **option_values: Any,
) -> None:
    """Serve the console until a signal; or give a user a new password."""
    if reset_password is not None:
        _reset_password(output, data, reset_password)
        return
    configuration = read_configuration(Path(data))
    server = ConsoleServer(
        ConsoleSettings(
            _with_registries(
                clusters_of(clusters, zookeepers, http_urls, client_configs),
                option_values["registries"],
            ),
            Path(data) / FILE_NAME,
            option_values["host"],
            option_values["port"],
            option_values["is_read_only"],
            os.environ.get(_PASSWORD_VARIABLE),
            allowed_networks=configuration.allowed_networks,
            allows_insecure=option_values["is_insecure"] or configuration.allows_insecure,
            first_rules=FIRST_RULES,
            oidc=configuration.oidc,
        )
    )
    stopped = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    server.start()
    announce(output, server)
    stopped.wait()
    server.stop()
    note("The console has stopped.")


def clusters_of(
    clusters: Sequence[str],
    zookeepers: Mapping[str, str],
    http_urls: Mapping[str, str],
    client_configs: Mapping[str, str],
) -> tuple[ClusterSettings, ...]:
    """Return the clusters of the options; ConfigError names the option that is wrong.

    The keys of `zookeepers` and `client_configs` are names of clusters, and the keys of `http_urls`
    are NAME/BROKER. The file of a profile is used unless `client_configs` has another one.
    """
    parsed = [_cluster(text, client_configs) for text in clusters]
    names = {cluster.name for cluster in parsed}
    urls: dict[str, dict[int, str]] = {name: {} for name in names}
    for key, url in http_urls.items():
        name, _, broker = key.rpartition("/")
        if not is_number(broker, 32) or not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--http-url {key}={url} is not of the form NAME/BROKER=URL, as in"
                " local/1=http://127.0.0.1:9644"
            )
        _check_name("--http-url", name, names)
        urls[name][int(broker)] = url.rstrip("/")
    for name in zookeepers:
        _check_name("--zookeeper", name, names)
    for name in client_configs:
        _check_name("--command-config", name, names)
    return tuple(
        replace(item, zookeeper=zookeepers.get(item.name), http_urls=urls[item.name])
        for item in parsed
    )


def _with_registries(
    clusters: tuple[ClusterSettings, ...], registries: Mapping[str, str]
) -> tuple[ClusterSettings, ...]:
    """Return the clusters with the registries of `--schema-registry`."""
    names = {cluster.name for cluster in clusters}
    for name, url in registries.items():
        _check_name("--schema-registry", name, names)
        if not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--schema-registry {name}={url} is not of the form NAME=URL, as in"
                " local=http://127.0.0.1:8081"
            )
    return tuple(
        replace(item, schema_registry=registries.get(item.name, "").rstrip("/"))
        for item in clusters
    )


def _cluster(text: str, client_configs: Mapping[str, str]) -> ClusterSettings:
    """Return a cluster of --cluster: NAME=HOST:PORT, or the name of a profile."""
    config = ""
    if "=" in text:
        settings = ClusterSettings.parse(text)
    else:
        known = profiles.read()
        if text not in known.addresses:
            names = ", ".join(sorted(known.addresses)) or "none"
            raise ConfigError(
                f"{text!r} is not a cluster: write NAME=HOST:PORT, as in local=localhost:9092, or the name "
                f"of a profile (there are: {names})"
            )
        settings = ClusterSettings(text, known.addresses[text])
        config = known.configs.get(text, "")
    if settings.name not in client_configs and not config:
        return settings
    options = read_options(client_configs.get(settings.name, config))
    return replace(settings, options=options)


def _check_name(option: str, name: str, names: Container[str]) -> None:
    if name not in names:
        raise ConfigError(f"{option} names {name!r}, which no --cluster has")


def announce(output: Output, server: ConsoleServer) -> None:
    """Print the address, with a login link, or with the one-time password of a first start."""
    if server.warning:
        note(f"Warning: {server.warning}.")
    facts = {"console": server.url}
    sentence = f"The console is on {server.url}"
    password = server.console.one_time_password
    if password is not None:
        facts |= {"user": FIRST_USER, "password": password}
        sentence += f": log in as {FIRST_USER} with the one-time password {password}"
    elif server.console.settings.has_login_link and not server.console.users.has_password(
        FIRST_USER
    ):
        link = f"{server.url}/login?token={server.console.login_link.create()}"
        facts |= {"user": FIRST_USER, "link": link}
        sentence = f"The console is on {link} (valid once)"
    # The reader of standard output may have ended; the console continues without it.
    with contextlib.suppress(BrokenPipeError):
        output.done(sentence, **facts)


@dataclass(frozen=True, slots=True)
class LocalConsoleOptions:
    """The console options of `ottla up`, and the socket that listens already."""

    listener: socket.socket
    data: str
    host: str
    is_read_only: bool
    is_insecure: bool


@dataclass(slots=True)
class LocalConsoleServer:
    """A console in the process of brokers: it starts and stops in a thread of its own."""

    options: LocalConsoleOptions
    output: Output
    cluster: ClusterSettings
    _server: ConsoleServer | None = field(default=None, init=False)

    def start(self) -> None:
        """Start and print the address; a failure is printed, and the brokers continue."""
        try:
            configuration = read_configuration(Path(self.options.data))
            settings = ConsoleSettings(
                (self.cluster,),
                Path(self.options.data) / FILE_NAME,
                self.options.host,
                self.options.listener.getsockname()[1],
                self.options.is_read_only,
                os.environ.get(_PASSWORD_VARIABLE),
                allowed_networks=configuration.allowed_networks,
                allows_insecure=self.options.is_insecure or configuration.allows_insecure,
                first_rules=FIRST_RULES,
                oidc=configuration.oidc,
                has_login_link=is_loopback(self.options.host),
            )
            server = ConsoleServer(settings)
            server.start(self.options.listener)
        except (OttlaError, OSError) as error:
            note(f"The console did not start: {error}")
            return
        self._server = server
        announce(self.output, server)

    def stop(self) -> None:
        """Stop; idempotent."""
        if self._server is not None:
            self._server.stop()


def _reset_password(output: Output, data: str, name: str) -> None:
    path = Path(data) / FILE_NAME
    if not path.exists():
        raise ConfigError(f"{path} does not exist: name the folder of the console with --data")
    database = Database(path)
    try:
        password = one_time_password()
        clock = RealClock()
        users = Users(database, clock)
        users.set_password(name, password, must_change=True)
        Sessions(database, users, clock).close_all(name)
    finally:
        database.close()
    output.done(f"The one-time password of {name} is {password}", user=name, password=password)
