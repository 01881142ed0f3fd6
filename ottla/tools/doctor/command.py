"""`ottla doctor`: examine what a client or a broker needs, and report problems with remedies."""

from collections.abc import Iterator
from pathlib import Path

import click

from ottla.client.bootstrap import Address, parse_bootstrap
from ottla.client.config.properties import parse_properties
from ottla.tools import options
from ottla.tools.broker.settings import DEFAULT_DATA
from ottla.tools.doctor import cluster, libraries, machine, port
from ottla.tools.doctor.findings import Finding, State, has_failed
from ottla.tools.output import Output

_LOCAL = ("127.", "::1", "localhost", "0.0.0.0")  # noqa: S104 - compared with


@click.command("doctor")
@options.bootstrap
@click.option("--data", metavar="FOLDER", help="The broker's log directory.  "
              f"[default: {DEFAULT_DATA} if it exists or no broker answers]")  # fmt: skip
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="The broker's configuration file, to read log.dirs.",
)
@click.option("--write", is_flag=True,
              help="Compare clocks by a record in a temporary topic.")  # fmt: skip
@options.formatted
def command(
    output: Output, bootstrap: str, data: str | None, config: str | None, write: bool
) -> int:
    """Find why clients cannot reach a broker, or why a broker cannot start.

    If no broker is running, check if one could start here. Exit code 1 if a check fails.

    \b
    ottla doctor
    ottla doctor --bootstrap broker.example:9092 --write
    """
    findings: list[Finding] = []
    for address in parse_bootstrap(bootstrap):
        answered = port.examine(address)
        findings.append(answered)
        is_served = answered.state is State.OK
        if is_served:
            findings += cluster.examine(address, may_write=write)
        findings += _here(address, is_served, data, config)
    findings += libraries.examine()
    output.findings([{**each._asdict(), "state": each.state.value} for each in findings])
    return 1 if has_failed(findings) else 0


def _here(
    address: Address, is_served: bool, data: str | None, config: str | None
) -> Iterator[Finding]:
    """Examine this machine, if a broker runs or is to run on it."""
    if not address.host.startswith(_LOCAL) and data is None and config is None:
        return
    settings = {} if config is None else parse_properties(Path(config).read_text("utf-8"), config)
    is_told = data is not None or bool(settings.keys() & {"log.dirs", "log.dir"})
    for path in machine.directories(data, settings, DEFAULT_DATA):
        # A broker that answers may keep its data in a folder other than the default.
        if is_told or not is_served or path.exists():
            yield from machine.examine_directory(path, is_served=is_served)
    yield machine.examine_limits()
    if not is_served:
        yield machine.examine_free_port(address)
