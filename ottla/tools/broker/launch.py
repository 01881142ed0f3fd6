"""The work of `ottla up` and `ottla broker start`: settings, log, and brokers until the end.

Apart from the commands, which import no part of a broker before their arguments are valid.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError, StorageError
from ottla.base.loading import deferred, deferred_module
from ottla.client.config.properties import parse_properties
from ottla.cluster.options.option_tables import refuse_unknown_names
from ottla.server.node import Node
from ottla.tools.broker import layout, serving
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.broker.identity import with_identity
from ottla.tools.broker.local_console import LocalConsole, open_local_console
from ottla.tools.broker.settings import UpOptions, broker_settings, cluster_settings
from ottla.tools.output import Output, StatusLine, note
from ottla.tools.text_files import read_text

# One broker needs neither this nor the tree that several share.
if TYPE_CHECKING:
    from ottla.server import local_cluster
else:
    local_cluster = deferred_module("ottla.server.local_cluster")

_run_apart = deferred("ottla.tools.broker.processes", "run")


def up(
    output: Output, settings: Mapping[str, str], config: str | None, **option_values: Any
) -> None:
    """Run the brokers of `ottla up`; `option_values` are its other options, by name."""
    # On the terminal of a developer the audit log needs --log-level info.
    line = serving.configure_logs(
        output, option_values["log_levels"], option_values["log_format"], is_audited=False
    )
    file = {} if config is None else parse_properties(read_text(config), config)
    serving.report_unknown(file)
    up_options = UpOptions(
        host=option_values["host"],
        port=option_values["port"],
        data=option_values["data"],
        metrics_port=_metrics_port(option_values, {**file, **settings}),
        options=settings,
        file=file,
    )
    try:
        if option_values["has_processes"]:
            _run_processes(up_options, option_values, output, line)
        elif option_values["brokers"] > 1:
            _run_cluster(up_options, option_values, output, line)
        else:
            _run_broker(broker_settings(up_options), option_values, output, line)
    except (ConfigError, StorageError) as error:
        raise serving.with_next_commands(error, option_values["data"] or DEFAULT_DATA) from error
    note("Ottla has stopped.")


def _metrics_port(option_values: Mapping[str, Any], settings: Mapping[str, str]) -> int | None:
    """Return the port of the brokers' HTTP server: the console reads from it, on any free port."""
    port: int | None = option_values["metrics_port"]
    is_needed = option_values["console"] and port is None and "metrics.listener" not in settings
    return 0 if is_needed else port


def start(
    output: Output, config: str, settings: Mapping[str, str], supervised: bool, **option_values: Any
) -> None:
    """Run the broker of `ottla broker start`; it stops with its standard input if `supervised`."""
    line = serving.configure_logs(
        output,
        option_values["log_levels"],
        option_values["log_format"],
        is_audited=not supervised,
    )
    refuse_unknown_names(settings)
    file = parse_properties(read_text(config), config)
    serving.report_unknown(file)
    settings_with_identity = with_identity({**file, **settings})
    node = _SupervisedNode(settings_with_identity) if supervised else Node(settings_with_identity)
    data = (
        settings_with_identity.get("log.dirs")
        or settings_with_identity.get("log.dir")
        or "ottla-data"
    )

    serving.serve(node, lambda node: [node], output, line, data)
    if not supervised:
        note("Ottla has stopped.")


class _SupervisedNode(Node):
    """A broker of `ottla up --processes`; the end of its input means that all brokers stop.

    Its input ends when the process that supervises it closes the pipe, or dies.
    """

    _stops_with_cluster = False

    async def start(self) -> None:
        """Start; from now on the end of standard input stops the broker."""
        self._watch_input()
        await super().start()

    def _watch_input(self) -> None:
        loop = asyncio.get_running_loop()

        def read() -> None:
            if not os.read(sys.stdin.fileno(), 1):
                loop.remove_reader(sys.stdin)
                self._stops_with_cluster = True
                self.on_failure()

        loop.add_reader(sys.stdin, read)

    async def stop(self, *, with_cluster: bool = False) -> None:
        """Stop; the leaders stay if all brokers stop."""
        await super().stop(with_cluster=with_cluster or self._stops_with_cluster)


def _run_broker(
    settings: dict[str, str],
    option_values: Mapping[str, Any],
    output: Output,
    line: StatusLine | None,
) -> None:
    data = settings.get("log.dirs") or settings["log.dir"]
    layout.refuse_cluster(data)
    local_console = open_local_console(option_values, data.split(",")[0], output, settings)
    zookeeper = settings.get("zookeeper.connect")
    folders = [*data.split(","), settings.get("coordination.dir", "")]
    with _in_new_folders(folders, local_console, zookeeper) as on_ready:
        serving.serve(Node(settings), lambda node: [node], output, line, data, on_ready)


@contextmanager
def _in_new_folders(
    folders: Sequence[str], local_console: LocalConsole | None, zookeeper: str | None
) -> Iterator[Callable[[Sequence[Node]], None]]:
    """Yield the function to call when the brokers are ready; if it is not called, they leave no
    files.
    """
    named = [folder.strip() for folder in folders if folder.strip()]
    with (
        layout.removed_unless_started(named) as on_started,
        serving.with_local_console(local_console, zookeeper) as on_ready,
    ):

        def ready(nodes: Sequence[Node]) -> None:
            on_started()
            on_ready(nodes)

        yield ready


def _run_cluster(
    up_options: UpOptions, option_values: Mapping[str, Any], output: Output, line: StatusLine | None
) -> None:
    data, count = up_options.data or DEFAULT_DATA, option_values["brokers"]
    settings = cluster_settings(up_options, count)
    layout.check_cluster(data, count)
    cluster = local_cluster.LocalCluster(settings, layout.coordination(data))
    local_console = open_local_console(option_values, data, output, settings[0])
    with _in_new_folders([data], local_console, None) as on_ready:
        serving.serve(cluster, lambda cluster: cluster.nodes, output, line, data, on_ready)


def _run_processes(
    up_options: UpOptions, option_values: dict[str, Any], output: Output, line: StatusLine | None
) -> None:
    data, count = up_options.data or DEFAULT_DATA, option_values["brokers"]
    settings = cluster_settings(up_options, count)
    layout.check_cluster(data, count)
    logging = [word for level in option_values["log_levels"] for word in ("--log-level", level)]
    local_console = open_local_console(option_values, data, output, settings[0])
    options = [*logging, "--log-format", option_values["log_format"]]
    with layout.removed_unless_started([data]) as on_started:
        _run_apart(data, settings, options, output, line, local_console, on_started)
