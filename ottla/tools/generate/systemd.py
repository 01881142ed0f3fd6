"""`ottla generate systemd`: a unit that runs one broker, or with --pipeline one pipeline."""

from pathlib import Path
from typing import Any

import click

from ottla.base.loading import deferred
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
_PIPELINE = """\
# systemd unit of the pipeline {name}, written by `ottla generate systemd`. Copy it to
# /etc/systemd/system/ottla-{slug}.service, create the user {user}, and copy the pipeline to {file}.
# Java 17 and ottla[spark] are installed.{secrets} Then:
#   systemctl daemon-reload && systemctl enable --now ottla-{slug}
#   OTTLA_STATE_DIR=/var/lib/ottla-{slug} ottla pipeline status {name}
[Unit]
Description=Ottla pipeline {name}
After=network-online.target
Wants=network-online.target

[Service]
User={user}
Group={user}
StateDirectory=ottla-{slug}
WorkingDirectory=/var/lib/ottla-{slug}
Environment=OTTLA_STATE_DIR=/var/lib/ottla-{slug} HOME=/var/lib/ottla-{slug}
{environment}ExecStart={program} pipeline run {file} --checkpoint /var/lib/ottla-{slug}/checkpoint --metrics-listener 127.0.0.1:9400
# SIGTERM ends the micro-batch that runs; the next start resumes from the checkpoint.
KillSignal=SIGTERM
TimeoutStopSec=120
# Status 143 is the end of Spark's Java by SIGTERM.
SuccessExitStatus=143
Restart=on-failure
RestartSec=10
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true

[Install]
WantedBy=multi-user.target
"""
_service = deferred("ottla.tools.generate.pipelines", "service_of")
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


def pipeline_text_of(service: Any, user: str = USER, program: str = PROGRAM) -> str:
    """Return the unit of a pipeline; its passwords are in a file that only root can read."""
    slug, variables = service.slug, ", ".join(service.variables)
    secrets = f"/etc/ottla/{slug}.env"
    return _PIPELINE.format(
        # systemd expands names that begin with % in the description.
        name=service.name.replace("%", "%%"),
        slug=slug,
        user=user,
        program=program,
        file=f"/etc/ottla/{slug}.yaml",
        secrets=f" Write {variables} as NAME=VALUE to\n# {secrets}, mode 0600."
        if variables
        else "",
        environment=f"EnvironmentFile={secrets}\n" if variables else "",
    )


@click.command("systemd")
@click.option("--user", default=USER, show_default=True, help="The user of the broker.")
@click.option("--program", default=PROGRAM, show_default=True, metavar="FILE",
              help="The path of the program `ottla`.")  # fmt: skip
@click.option("--config", default=CONFIG, show_default=True, metavar="FILE",
              help="The configuration of the broker.")  # fmt: skip
@click.option("--data", multiple=True, metavar="FOLDER",
              help="A log directory of the broker; may be repeated.  [default: /var/lib/USER]")  # fmt: skip
@click.option("--pipeline", metavar="FILE.yaml",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Run this pipeline instead of a broker.")  # fmt: skip
@destination
def command(
    output: Output, pipeline: Path | None, path: Path | None, force: bool, **option_values: Any
) -> None:
    """Print a systemd unit that runs a broker, or a pipeline.

    \b
    ottla generate systemd --data /data/ottla --to ottla-broker.service
    ottla generate systemd --pipeline flights.yaml --to ottla-flights.service
    """
    if pipeline is None:
        text = text_of(**option_values)
    else:
        user, program = option_values["user"], option_values["program"]
        text = pipeline_text_of(_service(pipeline), user, program)
    write(output, {"unit": text}, text, path, force=force)
