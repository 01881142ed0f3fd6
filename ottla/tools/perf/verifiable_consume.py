"""`ottla perf verifiable-consume TOPIC`: read records, with an event for each poll and commit."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.client.group.record_consumer import open_record_consumer
from ottla.tools import options
from ottla.tools.measuring.live import LiveLine
from ottla.tools.measuring.verifiable import EventsOfConsumer, event_line
from ottla.tools.output import Output, note
from ottla.tools.perf import client_options
from ottla.tools.signals import StopSignals

_COLUMNS = ("topic", "partition", "records", "first_offset", "last_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The command-line options that select the records."""

    topics: tuple[str, ...]
    group: str
    records: int | None
    each: bool
    settings: dict[str, str]


@click.command("verifiable-consume")
@click.argument("topics", nargs=-1, required=True, shell_complete=options.complete_topic)
@click.option("-G", "--group", required=True, shell_complete=options.complete_group,
              help="The group to read as, from its committed offsets.")  # fmt: skip
@click.option("--records", type=click.IntRange(min=1), metavar="N",
              help="Stop after this number of records (default: until Ctrl-C).")  # fmt: skip
@click.option("--each", is_flag=True, help="Report each record, with key and value.")
@client_options.settings
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Read records of TOPICS as a member of a group, and report polls, commits and assignments.

    With --output json, each event is one line, as kafka-verifiable-consumer prints it. Offsets are
    committed after each poll.

    \b
    ottla perf verifiable-consume orders --group verifiers --records 1000
    ottla perf verifiable-consume orders --group verifiers --each --output json > read.jsonl
    """
    request = VerifyOptions(**option_values)
    for topic in request.topics:
        # A group would wait without a message for a topic that does not exist.
        brokers.retry(partial(brokers.topic, topic))
    report = _Report(output)
    events = EventsOfConsumer(report.add, is_verbose=request.each, stores=False)
    settings = {**brokers.settings, "auto.offset.reset": "earliest", **request.settings}
    on_down = client_options.on_down(brokers.bootstrap)
    report.add("startup_complete")
    with (
        StopSignals() as stop,
        open_record_consumer(brokers.bootstrap, group_id=request.group, settings=settings,
                             on_down=on_down) as consumer,
    ):  # fmt: skip
        limit = -1 if request.records is None else request.records
        events.run(consumer, request.topics, limit, stop)
    events.report_end()
    report.print_table()


class _Report:
    """The events as lines of JSON, or the records of each partition as a table at the end."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._live = LiveLine()
        self._count = 0
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}

    def add(self, name: str, **fields: Any) -> None:
        """Print or count an event."""
        if self._output.is_json:
            click.echo(event_line(name, **fields))
            return
        if name == "records_consumed":
            self._count += fields["count"]
            for span in fields["partitions"]:
                self._add_span(span)
            self._live.show(self._count)
            return
        self._live.clear()
        if name == "record_data":
            click.echo(f"{fields['topic']}-{fields['partition']} {fields['offset']}: {fields['value']}")  # fmt: skip
        elif name == "offsets_committed" and not fields["success"]:
            note(f"The offsets were not committed: {fields['error']}")

    def _add_span(self, span: dict[str, Any]) -> None:
        row = self._rows.setdefault(
            (span["topic"], span["partition"]),
            {"topic": span["topic"], "partition": span["partition"], "records": 0,
             "first_offset": span["minOffset"]},
        )  # fmt: skip
        row["records"] += span["count"]
        row["last_offset"] = span["maxOffset"]

    def print_table(self) -> None:
        """Print the records of each partition; JSON has them in its events."""
        self._live.clear()
        if not self._output.is_json:
            rows = [self._rows[key] for key in sorted(self._rows)]
            self._output.rows(rows, _COLUMNS, empty="No records were read.")
