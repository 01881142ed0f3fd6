"""`ottla zookeeper stop`: stop the ZooKeeper servers that were started on this machine."""

import time

import click

from ottla.base.errors import ConfigError, OttlaError
from ottla.base.platform.processes import await_end
from ottla.tools import options
from ottla.tools.daemons import ZOOKEEPER, stop_daemons
from ottla.tools.output import Output
from ottla.tools.owners import owner_of, stop_owner
from ottla.tools.zookeeper.java_server import DEFAULT_DATA


@click.command("stop")
@click.option("--data", metavar="FOLDER", type=click.Path(file_okay=False),
              help=f"The folder of `ottla zookeeper start --data`.  [default: {DEFAULT_DATA}, and all servers of zookeeper-server-start]")  # fmt: skip
@click.option("--timeout", type=options.FiniteRange(min=0), default=60.0, show_default=True,
              metavar="SECONDS", help="How long to wait until the servers have stopped.")  # fmt: skip
@options.formatted
def command(output: Output, data: str | None, timeout: float) -> None:
    """Stop the ZooKeeper servers of a folder, and wait for their end.

    Without --data, also those that Apache Kafka's script zookeeper-server-start has started.

    \b
    ottla zookeeper stop
    ottla zookeeper stop --data /tmp/zk
    """
    folder = DEFAULT_DATA if data is None else data
    owner = owner_of(folder)
    process_ids = stop_daemons(ZOOKEEPER) if data is None else []
    if owner is not None:
        stop_owner(folder, owner, "ZooKeeper", timeout)
    _await_end(process_ids, timeout)
    if owner is not None:
        process_ids.insert(0, owner)
    if not process_ids:
        raise ConfigError(
            f"no ZooKeeper runs in {folder}: name the folder of `ottla zookeeper start` with --data"
        )
    listed = ", ".join(map(str, process_ids))
    noun = "process" if len(process_ids) == 1 else "processes"
    output.done(f"ZooKeeper ({noun} {listed}) has stopped.", process_ids=process_ids)


def _await_end(process_ids: list[int], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    for number in process_ids:
        if not await_end(number, max(0.0, deadline - time.monotonic())):
            raise OttlaError(
                f"ZooKeeper (process {number}) has not stopped within {timeout:g} s: wait "
                "longer with --timeout, or end it with `kill -9`"
            )
