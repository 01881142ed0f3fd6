"""`ottla broker stop`: ask the broker that uses a log directory to stop, and wait for its end."""

import os
import signal
import time

import click

from ottla.base.errors import ConfigError, OttlaError
from ottla.base.files import RealFileSystem
from ottla.client.config.properties import parse_properties
from ottla.storage.files.checkpoints import LOCK_FILE
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.output import Output
from ottla.tools.text_files import read_text

_POLL_SECONDS = 0.05


@click.command("stop")
@click.option("--config", type=click.Path(exists=True, dir_okay=False),
              help="The configuration file that the broker was started with.")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"A log directory of the broker.  [default: {DEFAULT_DATA}]")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0), default=60.0, show_default=True,
              metavar="SECONDS", help="How long to wait until the broker has stopped.")  # fmt: skip
@options.formatted
def command(output: Output, config: str | None, data: str | None, timeout: float) -> None:
    """Stop the broker that uses a log directory of this machine.

    A controlled shutdown: other brokers become leaders of its partitions before it ends, and its
    logs are flushed.

    \b
    ottla broker stop --config server.properties
    ottla broker stop --data /var/lib/ottla
    """
    directory = data or _directory_of(config)
    process_id = owner_of(directory)
    if process_id is None:
        raise ConfigError(
            f"no broker uses {directory}: name its log directory with --data, or its "
            "configuration file with --config"
        )
    try:
        os.kill(process_id, signal.SIGTERM)
    except PermissionError as error:
        raise OttlaError(
            f"process {process_id} belongs to another user: run the command as that user"
        ) from error
    _wait(directory, process_id, timeout)
    output.done(f"The broker (process {process_id}) has stopped.", process_id=process_id)


def _directory_of(config: str | None) -> str:
    if config is None:
        return DEFAULT_DATA
    settings = parse_properties(read_text(config), config)
    names = settings.get("log.dirs") or settings.get("log.dir") or "ottla-data"
    return names.split(",")[0].strip()


def owner_of(directory: str) -> int | None:
    """Return the process that uses a log directory; None if it is not in use.

    OttlaError if the owner is not known: Apache Kafka locks the file without writing its process
    id.
    """
    path = f"{directory}/{LOCK_FILE}"
    if not os.path.exists(path):
        return None
    try:
        RealFileSystem().lock(path).release()
    except BlockingIOError as error:
        parts = (error.strerror or "").split()
        if len(parts) == 2 and parts[0] == "process" and parts[1].isdigit():
            return int(parts[1])
        raise OttlaError(
            f"the process that uses {directory} is not known: stop it with `kill`"
        ) from error
    return None


def _wait(directory: str, process_id: int, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while owner_of(directory) == process_id:
        if time.monotonic() > deadline:
            raise OttlaError(
                f"the broker (process {process_id}) has not stopped within {timeout:g} s: look at "
                "its log, wait longer with --timeout, or end it with `kill -9`"
            )
        time.sleep(_POLL_SECONDS)
