"""The search of `ottla topic search`: its request, where it runs, and its output."""

import json
import sys
import time
from typing import Any

import click

from ottla.base.errors import ApiError, OttlaError
from ottla.base.search.filters import Filters
from ottla.base.search.matching import Matcher
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import ConsumedRecord
from ottla.operations.offsets.positions import (
    BEGINNING,
    Anchor,
    Position,
    parse_range,
    resolve,
    resolve_end,
)
from ottla.operations.search.brokers import RemoteSearch
from ottla.operations.search.local import LocalSearch
from ottla.operations.search.request import Result, Search
from ottla.operations.survey.http import HttpError
from ottla.tools.http_addresses import Address, http_addresses, parse_address
from ottla.tools.output import Output, ProgressBar, count_text, note
from ottla.tools.record.formats import compile_format, json_format
from ottla.tools.signals import StopSignals
from ottla.tools.topic_partitions import check_partition


def search_topic(brokers: Brokers, output: Output, name: str, options: dict[str, Any]) -> int:
    """Search and print the matches; return 0 if there is one."""
    search = _request(brokers, name, options)
    # Before anything is sent: wrong filters are errors of the command line.
    Matcher(search.conditions)
    write = json_format if output.is_json else compile_format(options["format"])

    def show(record: ConsumedRecord) -> None:
        sys.stdout.buffer.write(write(record))
        sys.stdout.buffer.flush()

    known = {} if options["local"] else _addresses(brokers, options["http"])
    total = sum(end - start for start, end in search.ranges.values())
    with StopSignals() as stop, ProgressBar("Searching", total) as progress:
        runner = RemoteSearch(brokers, known, search) if known else LocalSearch(brokers, search)
        try:
            result = runner.run(show, progress.advance, stop)
        except HttpError as error:
            raise _explained(error) from error
    _report(result, output, in_brokers=bool(known), is_stopped=stop.requested)
    if stop.requested:
        raise OttlaError("interrupted before it was complete")
    return 0 if result.matches and not result.problems else 1


def _explained(error: HttpError) -> OttlaError:
    if error.status:
        return OttlaError(f"the broker at {error}")
    return OttlaError(
        f"the search failed ({error}): name the HTTP port with --http, or use --local"
    )


def addresses(brokers: Brokers) -> dict[int, Address]:
    """Return the HTTP addresses of the brokers that serve /search."""
    try:
        return http_addresses(brokers, {"search.enable": "true"})
    except ApiError:
        # The caller may not describe brokers.
        return {}


def _request(brokers: Brokers, name: str, options: dict[str, Any]) -> Search:
    now_ms = time.time_ns() // 1_000_000
    try:
        compile_format(options["format"])
        start, end = parse_range(options["positions"], now_ms)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if start is not None and start.anchor is Anchor.STORED:
        raise click.UsageError("`stored` is a position of a group: name an offset or a time")
    numbers = [row.partition for row in topics.describe_topic(brokers, name).partitions]
    for number in options["partitions"]:
        check_partition(name, number, numbers)
    keys = [(name, number) for number in sorted(set(options["partitions"]) or numbers)]
    starts = resolve(brokers, keys, start or BEGINNING)
    ends, until_ms = resolve_end(brokers, keys, end or Position(Anchor.END))
    if options["read_committed"]:
        level = offsets.READ_COMMITTED
        stable = offsets.list_offsets(
            brokers, dict.fromkeys(keys, offsets.LATEST), isolation_level=level
        )
        ends = {key: min(offset, stable[key].offset) for key, offset in ends.items()}
    from_time = start is not None and start.anchor is Anchor.TIME
    return Search(
        topic=name,
        ranges={key[1]: (starts[key], ends[key]) for key in keys},
        conditions=Filters(
            key=options["key"],
            value=options["value"],
            key_regex=options["key_regex"],
            value_regex=options["value_regex"],
            headers=options["headers"],
            where=options["conditions"],
            ignore_case=options["ignore_case"],
        ).conditions(),
        from_ms=start.value if start is not None and from_time else -1,
        until_ms=until_ms,
        read_committed=options["read_committed"],
        limit=options["count"] or 0,
    )


def _addresses(brokers: Brokers, http: str | None) -> dict[int, Address]:
    if http is None:
        served = addresses(brokers)
        return served if len(served) == len(brokers.node_ids()) else {}
    try:
        address = parse_address(http)
    except ValueError as error:
        raise click.UsageError(f"--http {error}.") from error
    return dict.fromkeys(brokers.node_ids(), address)


def _report(result: Result, output: Output, *, in_brokers: bool, is_stopped: bool) -> None:
    for sentence in result.problems:
        note(sentence)
    facts = {
        "matches": result.matches,
        "records": result.records,
        "seconds": round(result.seconds, 3),
        "in_brokers": in_brokers,
        "is_complete": not is_stopped and not result.problems,
    }
    if output.is_json:
        note(json.dumps(facts))
        return
    where = "in the brokers" if in_brokers else "by reading the topic"
    matches = count_text(result.matches, "match", "matches")
    records = count_text(result.records, "record")
    note(f"{matches}; {records} decoded {where} in {result.seconds:.1f} s.")
