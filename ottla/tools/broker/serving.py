"""Code shared by the commands that run brokers: the log, the ready line, the live line."""

import contextlib
import errno
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.base import logs
from ottla.base.errors import ConfigError, OttlaError
from ottla.cluster.options.option_tables import unknown_names
from ottla.server import loop
from ottla.server.node import Node
from ottla.tools.broker.levels import parse_levels
from ottla.tools.broker.live import LiveLine
from ottla.tools.broker.local_console import LocalConsole, facts_of
from ottla.tools.output import Output, StatusLine, note


def configure_logs(
    output: Output, log_levels: Sequence[str], log_format: str, *, is_audited: bool
) -> StatusLine | None:
    """Set up logging on standard error; return the status line if that is a terminal.

    If `is_audited`, the audit log is written at any level of the other lines, unless the operator
    sets the level of its logger.
    """
    levels = parse_levels(log_levels)
    single = {logs.AUDIT: logging.INFO} | levels.single if is_audited else levels.single
    line = StatusLine(sys.stderr) if sys.stderr.isatty() and not output.is_json else None
    logs.configure(line or sys.stderr, level=levels.level, levels=single, log_format=log_format)
    return line


def report_unknown(file: Mapping[str, str]) -> None:
    """Report the unknown names in a file if --log-level hides the broker's own warning."""
    if not logging.getLogger(Node.__module__).isEnabledFor(logging.WARNING):
        for sentence in unknown_names(file):
            note(sentence)


def announce(output: Output, nodes: Sequence[Node], data: str) -> None:
    """Print the ready line: the addresses of all brokers, and where their data is."""
    bootstrap = ",".join(node.endpoints[0].address for node in nodes)
    sentence = f"Ottla is ready on {bootstrap} (data in {data})"
    facts = {"bootstrap": bootstrap, "data": data, "cluster_id": nodes[0].cluster_id}
    addresses = [node.monitoring_address for node in nodes]
    metrics = ",".join("http://{}:{}/metrics".format(*address) for address in addresses if address)
    if metrics:
        facts["metrics"] = metrics
        sentence += f"\nMetrics are on {metrics}"
    # The reader of standard output may have ended; the brokers continue without it.
    with contextlib.suppress(BrokenPipeError):
        output.done(sentence, **facts)


@contextlib.contextmanager
def with_local_console(
    local_console: LocalConsole | None, zookeeper: str | None
) -> Iterator[Callable[[Sequence[Node]], None]]:
    """Yield the function that starts the console beside brokers; stop the console at the end."""

    def on_ready(nodes: Sequence[Node]) -> None:
        if local_console is not None:
            local_console.start(facts_of(local_console, nodes, zookeeper))

    try:
        yield on_ready
    finally:
        if local_console is not None:
            local_console.stop()


def serve(
    service: loop.S,
    nodes_of: Callable[[loop.S], Sequence[Node]],
    output: Output,
    line: StatusLine | None,
    data: str,
    on_ready: Callable[[Sequence[Node]], None] = lambda nodes: None,
) -> None:
    """Run brokers until a signal; raises the error of the start, or the one that ended them.

    `on_ready` is called after the ready line is printed.
    """
    live: LiveLine | None = None

    def ready(service: loop.S) -> None:
        nonlocal live
        announce(output, nodes_of(service), data)
        on_ready(nodes_of(service))
        if line is not None:
            live = LiveLine(nodes_of(service), line)
            live.start()

    try:
        loop.run(service, ready)
    finally:
        if live is not None:
            live.stop()


def _next_commands(error: BaseException, data: str) -> str:
    """Return a sentence with commands for a start that failed; empty if there is no better one."""
    for cause in _causes(error):
        if isinstance(cause, BlockingIOError):
            return (
                f"To stop it, run `ottla broker stop --data {data}`; to start another broker, run "
                "`ottla up --port 0 --data FOLDER`"
            )
        if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
            return "For a free port, run `ottla up --port 0`; `ottla doctor` shows what listens"
    return ""


def with_next_commands(error: OttlaError, data: str) -> OttlaError:
    """Return the error of a start with the commands to run next, or the same error."""
    sentence = _next_commands(error, data)
    return ConfigError(f"{str(error).rstrip('.')}. {sentence}") if sentence else error


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__
