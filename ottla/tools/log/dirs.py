"""`ottla log dirs [TOPIC]…`: the sizes of replicas by broker and log directory (KIP-113)."""

import click

from ottla.client.admin import replicas, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.broker_ids import broker_option, running_brokers
from ottla.tools.output import Output, count_text, note, size_text

_COLUMNS = ("broker", "directory", "topic", "partition", "size", "offset_lag", "future")


@click.command("dirs")
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=options.complete_topic)
@broker_option
@options.connected
def command(
    brokers: Brokers, output: Output, names: tuple[str, ...], broker_ids: tuple[int, ...]
) -> int:
    """Show the sizes of replicas by broker and log directory, in bytes.

    A future replica is a copy that will replace the replica in another directory of its broker. A
    stray log, which is listed by the name of its folder, belongs to no replica of its broker, and
    is removed after log.stray.retention.ms. The exit code is 1 if a directory is offline, else 0.

    \b
    ottla log dirs orders
    ottla log dirs --broker 1 --broker 2
    """
    for name in names:
        topics.describe_topic(brokers, name)
    node_ids = [broker.node_id for broker in running_brokers(brokers, broker_ids)]
    directories = [
        (node_id, directory)
        for node_id, rows in replicas.list_all_log_dirs(brokers, node_ids).items()
        for directory in rows
    ]
    rows = [
        {
            "broker": node_id,
            "directory": directory.path,
            "topic": topic,
            "partition": partition,
            "size": replica.size,
            "offset_lag": replica.offset_lag,
            "future": replica.is_future,
        }
        for node_id, directory in directories
        for (topic, partition), replica in sorted(directory.replicas.items())
        if not names or topic in names
    ]
    if not names:
        rows += [
            {
                "broker": node_id,
                "directory": directory.path,
                "topic": folder,
                "partition": None,
                "size": size,
                "offset_lag": None,
                "future": False,
            }
            for node_id, directory in directories
            for folder, size in directory.strays.items()
        ]
    output.rows(rows, _COLUMNS, empty="No replicas.")
    for node_id, directory in directories:
        note(f"Broker {node_id}, {directory.path}: {_state(directory)}.")
    return 1 if any(directory.error_code for _, directory in directories) else 0


def _state(directory: replicas.LogDirectory) -> str:
    if directory.error_code:
        return "offline: replace the disk, and restart the broker"
    size = size_text(sum(replica.size for replica in directory.replicas.values()))
    text = f"{count_text(len(directory.replicas), 'replica')} with {size}"
    if directory.strays:
        stray_size = size_text(sum(directory.strays.values()))
        text += f", {count_text(len(directory.strays), 'stray log')} with {stray_size}"
    if directory.usable_bytes >= 0:
        free, total = map(size_text, (directory.usable_bytes, directory.total_bytes))
        text += f", {free} of {total} free"
    return text
