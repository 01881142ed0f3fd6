"""`ottla debug bundle [FILE]`: write facts about the cluster to an archive, for a report."""

import time
from pathlib import Path

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_write = deferred("ottla.tools.debug.collecting", "write_bundle")


@click.command("bundle")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@options.connected
def command(brokers: Brokers, output: Output, file: Path | None) -> None:
    """Collect versions, topics, options, groups, offsets, log directories and metrics in a file.

    FILE is an archive (default: ottla-bundle-DATE-TIME.tar.gz), and must not exist. It contains no
    records, and no values of options whose names look like a password, a key or a token. It
    contains the names of topics, groups and hosts: look at it before you send it.
    """
    path = file or Path(f"ottla-bundle-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz")
    brokers.metadata([])
    try:
        names = _write(brokers, path)
    except FileExistsError:
        raise ConfigError(f"{path} exists, and was not changed: name another file") from None
    output.done(f"Wrote {len(names)} files to {path}.", file=str(path), files=names)
