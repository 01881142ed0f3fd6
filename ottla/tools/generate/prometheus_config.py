"""`ottla generate prometheus-config`: a scrape configuration for the brokers of one cluster."""

import re
from pathlib import Path

import click

from ottla.base.errors import ConfigError
from ottla.cluster.options.metrics_options import parse_address
from ottla.tools.generate.writing import destination, write, yaml
from ottla.tools.output import Output

_HEAD = """\
# Written by `ottla generate prometheus-config`.
# Metrics of the cluster (topics, groups) get the cluster's name as instance: each is served by one
# broker only, by another one after an election. Dashboards made for kafka_exporter expect one instance.
"""
_INTERVAL = re.compile(
    r"(?=[1-9])([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?"
)
# The names of kafka_exporter and kafka-lag-exporter.
CLUSTER_METRICS = (
    "kafka_(brokers|broker_info|topic_partition.*|consumergroup_.*|partition_.*_offset)"
)


def document_of(
    cluster: str, targets: tuple[str, ...], interval: str, rules: tuple[str, ...]
) -> dict[str, object]:
    """Return the configuration as a mapping.

    `targets` are the metrics listeners of the brokers, as host:port.
    """
    configuration: dict[str, object] = {
        "global": {"scrape_interval": interval, "evaluation_interval": interval}
    }
    if rules:
        configuration["rule_files"] = list(rules)
    configuration["scrape_configs"] = [
        {
            "job_name": "ottla",
            "static_configs": [{"targets": list(targets), "labels": {"cluster": cluster}}],
            "metric_relabel_configs": [
                {
                    "source_labels": ["__name__"],
                    "regex": CLUSTER_METRICS,
                    "target_label": "instance",
                    "replacement": cluster,
                }
            ],
        }
    ]
    return configuration


def text_of(cluster: str, targets: tuple[str, ...], interval: str, rules: tuple[str, ...]) -> str:
    """Return the configuration as the text of a file."""
    return _HEAD + yaml(document_of(cluster, targets, interval, rules))


@click.command("prometheus-config")
@click.option("--target", "targets", multiple=True, metavar="HOST:PORT",
              help="The metrics listener of a broker; may be repeated.  [default: 127.0.0.1:9308]")  # fmt: skip
@click.option("--cluster", default="ottla", show_default=True, metavar="NAME",
              help="The name of the cluster in labels.")  # fmt: skip
@click.option("--interval", default="15s", show_default=True, metavar="TIME",
              help="The time between two scrapes.")  # fmt: skip
@click.option("--rules", multiple=True, metavar="FILE",
              help="A file of alert rules; may be repeated.")  # fmt: skip
@destination
def command(
    output: Output,
    targets: tuple[str, ...],
    cluster: str,
    interval: str,
    rules: tuple[str, ...],
    path: Path | None,
    force: bool,
) -> None:
    """Print a configuration for Prometheus.

    \b
    ottla generate prometheus-config --target a:9308 --target b:9308 --rules ottla-rules.yml
    """
    for target in targets:
        if parse_address(target) is None:
            raise ConfigError(f"--target {target!r}: it must look like host:port")
    if _INTERVAL.fullmatch(interval) is None:
        raise ConfigError(
            f"--interval {interval!r}: write a time of Prometheus, as in 15s or 1m30s"
        )
    values = (cluster, targets or ("127.0.0.1:9308",), interval, rules)
    write(output, document_of(*values), text_of(*values), path, force=force)
