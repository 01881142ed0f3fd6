"""`ottla generate systemd`: a unit that runs one broker."""

from pathlib import Path

import click

from ottla.tools.generate.writing import destination, write
from ottla.tools.output import Output

_UNIT = """\
# systemd unit of one broker, written by `ottla generate systemd`. Copy it to
# /etc/systemd/system/ottla-broker.service, create the user {user}, and write {config} with
# log.dirs={log_dirs}. Then:
#   systemctl daemon-reload && systemctl enable --now ottla-broker
[Unit]
Description=Ottla broker (Apache-Kafka-compatible)
Documentation=https://kafka.apache.org/documentation/
After=network-online.target
Wants=network-online.target

[Service]
User={user}
Group={user}
StateDirectory={user}
ExecStart={program} broker start --config {config} --log-level info
# SIGTERM is a controlled shutdown: leaders move to other brokers and logs are flushed.
KillSignal=SIGTERM
TimeoutStopSec=300
# A broker that was killed is started again; one that cannot start says why in the journal.
Restart=on-failure
RestartSec=2
# Segments and connections each need a descriptor.
LimitNOFILE=1048576
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
{writable}
[Install]
WantedBy=multi-user.target
"""
USER, PROGRAM, CONFIG = "ottla", "/opt/ottla/bin/ottla", "/etc/ottla/server.properties"


def text_of(
    user: str = USER, program: str = PROGRAM, config: str = CONFIG, data: tuple[str, ...] = ()
) -> str:
    """Return the unit; `data` are log directories outside of /var/lib, which it may write to."""
    writable = "".join(f"ReadWritePaths={path}\n" for path in data)
    log_dirs = ",".join(data) or f"/var/lib/{user}"
    return _UNIT.format(
        user=user, program=program, config=config, log_dirs=log_dirs, writable=writable
    )


@click.command("systemd")
@click.option("--user", default=USER, show_default=True, help="The user of the broker.")
@click.option("--program", default=PROGRAM, show_default=True, metavar="FILE",
              help="The path of the program `ottla`.")  # fmt: skip
@click.option("--config", default=CONFIG, show_default=True, metavar="FILE",
              help="The configuration of the broker.")  # fmt: skip
@click.option("--data", multiple=True, metavar="FOLDER",
              help="A log directory of the broker; may be repeated.  [default: /var/lib/USER]")  # fmt: skip
@destination
def command(
    output: Output,
    user: str,
    program: str,
    config: str,
    data: tuple[str, ...],
    path: Path | None,
    force: bool,
) -> None:
    """Print a systemd unit that runs a broker.

    \b
    ottla generate systemd --data /data/ottla --to ottla-broker.service
    """
    text = text_of(user, program, config, data)
    write(output, {"unit": text}, text, path, force=force)
