"""`ottla broker stop`: ask the broker that uses a log directory to stop, and wait for its end."""

import click

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.output import Output
from ottla.tools.owners import owner_of, stop_owner
from ottla.tools.text_files import read_text


@click.command("stop")
@click.option("--config", type=click.Path(exists=True, dir_okay=False),
              help="The configuration file that the broker was started with.")  # fmt: skip
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"A log directory of the broker.  [default: {DEFAULT_DATA}]")  # fmt: skip
@click.option("--timeout", type=options.FiniteRange(min=0), default=60.0, show_default=True,
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
    stop_owner(directory, process_id, "the broker", timeout)
    output.done(f"The broker (process {process_id}) has stopped.", process_id=process_id)


def _directory_of(config: str | None) -> str:
    if config is None:
        return DEFAULT_DATA
    settings = parse_properties(read_text(config), config)
    names = settings.get("log.dirs") or settings.get("log.dir") or "ottla-data"
    return names.split(",")[0].strip()
