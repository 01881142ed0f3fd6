"""`ottla generate alert-rules`: alerts for Prometheus on the metrics of Ottla."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from ottla.tools.generate.writing import destination, write, yaml
from ottla.tools.output import Output


class Rule(NamedTuple):
    """One alert: it fires when the expression has had a result for so long."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    remedy: str


class AlertThresholds(NamedTuple):
    """The thresholds that users choose; `job` is the job of the scrape configuration."""

    job: str = "ottla"
    lag_seconds: int = 300
    disk_percent: int = 15


def rules(thresholds: AlertThresholds) -> Iterator[Rule]:
    """Yield the alerts, the most urgent first."""
    yield Rule(
        "OttlaPartitionsOffline",
        "sum by (job, cluster) (kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
        "30s",
        "critical",
        "{{ $value }} partitions have no leader",
        "Clients cannot read or write them. Start the brokers that have their replicas.",
    )
    yield Rule(
        "OttlaNoActiveController",
        "sum by (job, cluster) (kafka_controller_kafkacontroller_activecontrollercount) != 1",
        "1m",
        "critical",
        "The cluster has {{ $value }} controllers",
        "Look at the log of the brokers for the state of their coordination session.",
    )
    yield Rule(
        "OttlaBrokerDown",
        f'up{{job="{thresholds.job}"}} == 0',
        "1m",
        "critical",
        "{{ $labels.instance }} does not respond",
        "Start the broker, or look at its log.",
    )
    yield Rule(
        "OttlaPartitionsUnderMinIsr",
        "kafka_server_replicamanager_underminisrpartitioncount > 0",
        "1m",
        "critical",
        "{{ $value }} partitions of {{ $labels.instance }} refuse acks=all",
        "Start the brokers that have their other replicas.",
    )
    yield Rule(
        "OttlaLogDirectoryOffline",
        "kafka_log_logmanager_offlinelogdirectorycount > 0",
        "0s",
        "critical",
        "{{ $value }} log directories of {{ $labels.instance }} have failed",
        "/healthz of the broker names directory and reason. Replace the disk, then restart the broker.",
    )
    yield Rule(
        "OttlaUncleanElection",
        "increase(kafka_controller_controllerstats_uncleanleaderelections_total[10m]) > 0",
        "0s",
        "critical",
        "A leader was elected that was not in sync: acknowledged records are lost",
        "Set unclean.leader.election.enable=false for topics whose records matter.",
    )
    yield from _warnings(thresholds)


def _warnings(thresholds: AlertThresholds) -> Iterator[Rule]:
    yield Rule(
        "OttlaPartitionsUnderReplicated",
        "kafka_server_replicamanager_underreplicatedpartitions > 0",
        "5m",
        "warning",
        "{{ $value }} partitions of {{ $labels.instance }} lack in-sync replicas",
        "Look for a broker that is down, slow, or cut off from the others.",
    )
    yield Rule(
        "OttlaDiskAlmostFull",
        "100 * ottla_log_directory_usable_bytes / ottla_log_directory_total_bytes"
        f" < {thresholds.disk_percent}",
        "5m",
        "warning",
        "{{ $labels.path }} of {{ $labels.instance }} has {{ $value | humanize }} % left",
        "Shorten the retention of large topics, move partitions, or add space.",
    )
    yield Rule(
        "OttlaDamagedPartitions",
        "ottla_damaged_partitions > 0",
        "0s",
        "warning",
        "{{ $value }} partitions of {{ $labels.instance }} have damaged records or failed "
        "maintenance, or must be recovered at the next start",
        "/healthz of the broker has the reason of each. If it is unusable until the next start, "
        "raise LimitNOFILE (ulimit -n) and restart the broker: no client can use the partition "
        "before. If upkeep failed, report the traceback in the log and restart the broker. If a "
        "file is damaged, its other records are served: let another replica lead and replace this "
        "one by a reassignment, or wait until retention deletes the segment.",
    )
    yield Rule(
        "OttlaGroupBehind",
        f"kafka_consumergroup_group_max_lag_seconds > {thresholds.lag_seconds}",
        "5m",
        "warning",
        "Group {{ $labels.group }} is {{ $value | humanizeDuration }} behind",
        "Look at its members with `ottla group describe`.",
    )
    yield Rule(
        "OttlaGroupWithoutMembers",
        "kafka_consumergroup_members == 0 and on (consumergroup, job, cluster) "
        "sum by (consumergroup, job, cluster) (kafka_consumergroup_lag_sum) > 0",
        "15m",
        "warning",
        "Group {{ $labels.consumergroup }} has lag and no members",
        "Start its consumers, or delete the group.",
    )
    yield from _brokers()


def _brokers() -> Iterator[Rule]:
    yield Rule(
        "OttlaEventLoopBusy",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent < 0.1",
        "10m",
        "warning",
        "{{ $labels.instance }} is idle for {{ $value | humanizePercentage }} of the time",
        "Move leaders to other brokers, or limit clients by quotas.",
    )
    yield Rule(
        "OttlaCoordinationSessionLost",
        "increase(kafka_server_sessionexpirelistener_zookeeperexpires_total[10m]) > 0",
        "0s",
        "warning",
        "{{ $labels.instance }} lost its coordination session",
        "Look for pauses of the broker and for the state of the ensemble.",
    )
    yield Rule(
        "OttlaBackgroundTaskFailed",
        "increase(ottla_background_task_failures_total[10m]) > 0",
        "0s",
        "warning",
        "A background task of {{ $labels.instance }} failed: {{ $labels.task }}",
        "The task was restarted. Report the traceback in the broker's log.",
    )
    yield Rule(
        "OttlaCertificateNotRenewed",
        "increase(ottla_certificate_failures_total[10m]) > 0",
        "0s",
        "warning",
        "{{ $labels.instance }} cannot use the new certificate of {{ $labels.listener }}",
        "The former one is in use. Correct the file that the broker's log names.",
    )
    yield Rule(
        "OttlaCertificateExpires",
        "ottla_certificate_expiry_timestamp_seconds - time() < 1209600",
        "0s",
        "warning",
        "The certificate of {{ $labels.listener }} of {{ $labels.instance }} expires in "
        "{{ $value | humanizeDuration }}",
        "Replace the file: the broker reads it again without a restart.",
    )
    yield Rule(
        "OttlaFewDescriptorsLeft",
        "process_open_fds / process_max_fds > 0.9",
        "5m",
        "warning",
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its descriptors",
        "Raise LimitNOFILE (ulimit -n).",
    )


def document_of(thresholds: AlertThresholds) -> dict[str, object]:
    """Return the file of rules as a mapping."""
    entries = [
        {
            "alert": rule.name,
            "expr": rule.expression,
            "for": rule.lasts,
            "labels": {"severity": rule.severity},
            "annotations": {"summary": rule.summary, "description": rule.remedy},
        }
        for rule in rules(thresholds)
    ]
    return {"groups": [{"name": "ottla", "rules": entries}]}


def text_of(thresholds: AlertThresholds) -> str:
    """Return the file of rules."""
    head = "# Written by `ottla generate alert-rules`. Name this file under rule_files of Prometheus.\n"
    return head + yaml(document_of(thresholds))


@click.command("alert-rules")
@click.option("--job", default="ottla", show_default=True, metavar="NAME",
              help="The job of the brokers in Prometheus.")  # fmt: skip
@click.option("--lag-seconds", default=300, show_default=True, type=click.IntRange(min=1),
              help="Warn if a group is this many seconds behind.")  # fmt: skip
@click.option("--disk-percent", default=15, show_default=True, type=click.IntRange(1, 99),
              help="Warn if less than this percentage of a disk is free.")  # fmt: skip
@destination
def command(
    output: Output, job: str, lag_seconds: int, disk_percent: int, path: Path | None, force: bool
) -> None:
    """Print alert rules for Prometheus.

    \b
    ottla generate alert-rules --to ottla-rules.yml
    """
    thresholds = AlertThresholds(job, lag_seconds, disk_percent)
    write(output, document_of(thresholds), text_of(thresholds), path, force=force)
