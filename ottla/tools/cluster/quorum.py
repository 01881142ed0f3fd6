"""`ottla cluster quorum`: the controllers of a KRaft cluster, and who of them votes (KIP-853)."""

import click

from ottla.base import uuids
from ottla.base.errors import OttlaError
from ottla.base.loading import deferred
from ottla.client.admin.apache import quorum
from ottla.client.admin.apache.quorum import Quorum
from ottla.client.brokers import Brokers
from ottla.client.config.properties import parse_properties
from ottla.client.errors import Unsupported
from ottla.operations import cluster as changes
from ottla.tools import options
from ottla.tools.output import JSON, Output, note
from ottla.tools.text_files import read_text

_COLUMNS = (
    "node", "status", "directory_id", "endpoints", "log_end_offset", "lag", "last_fetch_ms",
    "last_caught_up_ms",
)  # fmt: skip
_read_controller = deferred("ottla.tools.cluster.controller_files", "read_controller")
_parse_directory_id = deferred("ottla.tools.cluster.controller_files", "parse_directory_id")


@click.command("quorum")
@click.option("--add", "added", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Let the controller with this configuration file vote.")  # fmt: skip
@click.option("--remove", "removed", metavar="ID", type=click.IntRange(min=0),
              help="Remove a controller from the voters; --directory-id names its directory.")  # fmt: skip
@click.option("--directory-id", metavar="ID", help="The directory id of the controller to remove.")
@click.option("--execute", is_flag=True, help="Execute the change (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    added: str | None,
    removed: int | None,
    directory_id: str | None,
    execute: bool,
) -> None:
    """Show the controllers of a KRaft cluster, or add and remove voters.

    Ottla's cluster has no quorum: `ottla cluster info` names its controller.

    \b
    ottla cluster quorum --bootstrap kafka:9092
    ottla cluster quorum --add controller.properties --execute
    ottla cluster quorum --remove 3 --directory-id JEXY6aqzQY-32P5TStzaFg --execute
    """
    if added is not None and removed is not None:
        raise click.UsageError("Add and remove voters one after the other.")
    if (removed is None) != (directory_id is None):
        raise click.UsageError("Name --remove and --directory-id together.")
    try:
        if added is not None:
            _add(brokers, output, added, execute=execute)
        elif removed is not None:
            _remove(brokers, output, removed, str(directory_id), execute=execute)
        elif execute:
            raise click.UsageError("Name what to execute: --add or --remove.")
        else:
            _show(output, quorum.describe_metadata_quorum(brokers))
    except Unsupported as error:
        raise OttlaError(
            "The cluster has no KRaft quorum: `ottla cluster info` names its controller"
        ) from error


def _show(output: Output, described: Quorum) -> None:
    end_offset = described.leader.log_end_offset
    rows = [
        {
            "node": replica.node_id,
            "status": status.lower(),
            "directory_id": _text(replica.directory_id),
            "endpoints": [str(item) for item in described.endpoints.get(replica.node_id, ())],
            "log_end_offset": replica.log_end_offset,
            "lag": end_offset - replica.log_end_offset,
            "last_fetch_ms": replica.last_fetch_ms,
            "last_caught_up_ms": replica.last_caught_up_ms,
        }
        for replica, status in described.replicas()
    ]
    lag, lag_ms = described.max_follower_lag()
    if output.is_json:
        facts = {
            "leader": described.leader_id,
            "epoch": described.leader_epoch,
            "high_watermark": described.high_watermark,
            "max_follower_lag": lag,
            "max_follower_lag_ms": lag_ms,
        }
        Output(JSON).done("", **facts, replicas=rows)
        return
    output.rows(rows, _COLUMNS)
    note(
        f"Epoch {described.leader_epoch}, high watermark {described.high_watermark}. The last voter "
        f"is {lag} records behind."
    )


def _text(directory_id: bytes) -> str | None:
    return uuids.uuid_text(directory_id) if any(directory_id) else None


def _add(brokers: Brokers, output: Output, path: str, *, execute: bool) -> None:
    controller = _read_controller(parse_properties(read_text(path), path))
    if execute:
        changes.add_voter(brokers, *controller)
    endpoints = ", ".join(map(str, controller.endpoints))
    named = f"controller {controller.node_id} at {endpoints}"
    _report(output, f"Added {named}.", f"Would add {named}: repeat with --execute.", execute,
            controller.node_id)  # fmt: skip


def _remove(
    brokers: Brokers, output: Output, node_id: int, directory_id: str, *, execute: bool
) -> None:
    value = _parse_directory_id(directory_id)
    if execute:
        changes.remove_voter(brokers, node_id, value)
    named = f"controller {node_id} from the voters"
    _report(output, f"Removed {named}.", f"Would remove {named}: repeat with --execute.", execute,
            node_id)  # fmt: skip


def _report(output: Output, done: str, dry_run: str, executed: bool, node_id: int) -> None:
    output.done(done if executed else dry_run, controller=node_id, executed=executed)
