"""`ottla topic search TOPIC`: find records, in the brokers if they allow it."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_search = deferred("ottla.tools.search.running", "search_topic")
_FORMAT = "%t[%p] %o: %k %s\\n"


@click.command("search")
@click.argument("name", shell_complete=options.complete_topic)
@click.option("--key", default="", help="The key contains this text.")
@click.option("--value", "-s", default="", help="The value contains this text.")
@click.option("--key-regex", default="", metavar="REGEX", help="RE2, anywhere in the key.")
@click.option("--value-regex", default="", metavar="REGEX", help="RE2, anywhere in the value.")
@click.option("--header", "headers", multiple=True, metavar="NAME[=TEXT]",
              help="A header, whose value contains the text.")  # fmt: skip
@click.option("--where", "conditions", multiple=True, metavar="CONDITION",
              help="A filter: '$.total >= 100', 'value is null', 'header.trace contains \"4b\"'; see docs/search.md.")  # fmt: skip
@click.option("--ignore-case", "-i", is_flag=True, help="Texts match regardless of case.")
@click.option("-o", "--offset", "positions", multiple=True, metavar="POSITION",
              help="Start: beginning (default), 42, -10, @2026-02-14, @-1h; a second -o sets the end.")  # fmt: skip
@click.option("-p", "--partition", "partitions", type=options.number_of_partition, multiple=True,
              help="Only this partition; may be repeated.")  # fmt: skip
@click.option("-c", "--count", type=click.IntRange(min=1), help="Stop after this many matches.")
@click.option("--read-committed/--read-uncommitted", default=True, show_default=True,
              help="Skip records of open and aborted transactions, or find them, too.")  # fmt: skip
@click.option("-f", "--format", default=_FORMAT, help="As for `ottla consume`.")
@click.option("--http", metavar="HOST:PORT",
              help="The HTTP address of a single broker (default: each broker's metrics.listener).")  # fmt: skip
@click.option("--local", is_flag=True, help="Read the topic instead of asking the brokers.")
@options.connected
def command(brokers: Brokers, output: Output, name: str, **option_values: Any) -> int:
    """Find records of a topic. The exit code is 0 if there is a match, as with grep.

    Brokers with search.enable=true search where the log is; otherwise the topic is read. Ctrl-C
    cancels the search.

    \b
    ottla topic search orders --value refund -o @-1h
    ottla topic search orders --where '$.total >= 100' --where 'not key starts-with "test"'
    """
    return int(_search(brokers, output, name, option_values))
