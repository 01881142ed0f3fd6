"""The work of `ottla doctor`: examine each address, this machine and the libraries."""

from collections.abc import Iterator

from ottla.client.bootstrap import Address, parse_bootstrap
from ottla.client.config.access import ClusterAccess
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import security_of
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.doctor import cluster, libraries, machine, port
from ottla.tools.doctor.findings import Finding, State, has_failed
from ottla.tools.output import Output
from ottla.tools.text_files import read_text

_LOCAL = ("127.", "::1", "localhost", "0.0.0.0")  # noqa: S104 - compared with


def examine(
    output: Output,
    access: ClusterAccess,
    data: str | None,
    config: str | None,
    write: bool,
    explain: bool,
) -> int:
    """Print the findings and return the exit code: 1 if a check failed."""
    on_request = options.print_request if explain else None
    findings: list[Finding] = []
    security = security_of(access.options)
    for address in parse_bootstrap(access.bootstrap):
        answered = port.examine(address, security=security)
        findings.append(answered)
        is_served = answered.state is State.OK
        if is_served:
            findings += cluster.examine(address, security, may_write=write, on_request=on_request)
        findings += _here(address, is_served, data, config)
    findings += libraries.examine()
    output.findings([{**finding._asdict(), "state": finding.state.value} for finding in findings])
    return 1 if has_failed(findings) else 0


def _here(
    address: Address, is_served: bool, data: str | None, config: str | None
) -> Iterator[Finding]:
    """Examine this machine, if a broker runs or is to run on it."""
    if not address.host.startswith(_LOCAL) and data is None and config is None:
        return
    settings = {} if config is None else parse_properties(read_text(config), config)
    is_told = data is not None or bool(settings.keys() & {"log.dirs", "log.dir"})
    for path in machine.directories(data, settings, DEFAULT_DATA):
        # A broker that responds may keep its data in a folder other than the default.
        if is_told or not is_served or path.exists():
            yield from machine.examine_directory(path, is_served=is_served)
    yield machine.examine_limits()
    if not is_served:
        yield machine.examine_free_port(address)
