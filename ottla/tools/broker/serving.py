"""The work of `ottla up`: set up the log, start the node, report its address, and wait for the end.

Apart from the command, which imports no part of a broker before its arguments are valid.
"""

import contextlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.base import logs
from ottla.cluster.options.option_tables import unknown_names
from ottla.server import loop
from ottla.server.node import Node
from ottla.tools.broker.levels import parse_levels
from ottla.tools.broker.live import LiveLine
from ottla.tools.broker.properties import parse_properties
from ottla.tools.broker.settings import UpOptions, broker_settings
from ottla.tools.output import Output, StatusLine, note


def serve(output: Output, settings: Mapping[str, str], config: str | None, **words: Any) -> None:
    """Run a broker in the foreground; `words` are the other options of the command, by name.

    Raises ConfigError or StorageError if the broker cannot start.
    """
    levels = parse_levels(words["log_levels"])
    line = StatusLine(sys.stderr) if sys.stderr.isatty() and not output.is_json else None
    logs.configure(
        line or sys.stderr,
        level=levels.level,
        levels=levels.single,
        log_format=words["log_format"],
    )
    file = {} if config is None else parse_properties(Path(config).read_text("utf-8"), config)
    _report_unknown(file)
    command_line = UpOptions(
        host=words["host"],
        port=words["port"],
        data=words["data"],
        metrics_port=words["metrics_port"],
        options=settings,
        file=file,
    )
    _serve(broker_settings(command_line), output, line)


def _report_unknown(file: Mapping[str, str]) -> None:
    """Report the unknown names in a file if --log-level hides the broker's own warning."""
    if not logging.getLogger(Node.__module__).isEnabledFor(logging.WARNING):
        for sentence in unknown_names(file):
            note(sentence)


def _serve(settings: dict[str, str], output: Output, line: StatusLine | None) -> None:
    data = settings.get("log.dirs") or settings["log.dir"]
    node = Node(settings)
    live = None if line is None else LiveLine(node, line)

    def announce(node: Node) -> None:
        host = f"[{node.host}]" if ":" in node.host else node.host
        bootstrap = f"{host}:{node.port}"
        sentence = f"Ottla is ready on {bootstrap} (data in {data})"
        facts = {"bootstrap": bootstrap, "data": data, "cluster_id": node.cluster_id}
        if node.monitoring_address is not None:
            facts["metrics"] = "http://{}:{}/metrics".format(*node.monitoring_address)
            sentence += f"\nMetrics are on {facts['metrics']}"
        # The reader of standard output may have ended; the broker continues without it.
        with contextlib.suppress(BrokenPipeError):
            output.done(sentence, **facts)

        if live is not None:
            live.start()

    try:
        loop.run(node, announce)
    finally:
        if live is not None:
            live.stop()
    note("Ottla has stopped.")
