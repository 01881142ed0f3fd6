"""`ottla scripts`: the group of the commands in `installing`, and `run`, which installs nothing."""

import click
from click.shell_completion import CompletionItem

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.output import Output
from ottla_scripts.installing import install, listing
from ottla_scripts.table import SCRIPTS

_run_script = deferred("ottla_scripts.entry", "run")
_ignore_closed_pipes = deferred("ottla_scripts.printing", "ignore_closed_pipes")


def _complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=script.summary)
        for name, script in SCRIPTS.items()
        if name.startswith(incomplete)
    ]


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a script without installing it.",
)
@click.argument("name", shell_complete=_complete)
@click.argument("words", nargs=-1, metavar="[WORD]…", type=click.UNPROCESSED)
@options.formatted
def _run(output: Output, name: str, words: tuple[str, ...]) -> int:
    """Run the script NAME, or the one of a Java class, with all further words as its options.

    Output and exit codes are Apache Kafka's. Every script has the option `--output json`, which may
    be before NAME, too.

    \b
    ottla scripts run kafka-topics --bootstrap-server localhost:9092 --list
    ottla scripts run kafka.tools.GetOffsetShell --bootstrap-server localhost:9092 --topic orders
    """
    _ignore_closed_pipes()
    # A `--` before the first option ends our own; a script would ignore all words behind it.
    line = list(words[1:] if words[:1] == ("--",) else words)
    if output.is_json:
        line += ["--output", "json"]
    if "." in name.removesuffix(".sh"):
        # The class of a tool: `kafka-run-class` knows its script.
        return int(_run_script("kafka-run-class", [name, *line]))
    return int(_run_script(name, line))


command = click.Group(
    "scripts",
    {"list": listing, "run": _run, "install": install},
    help="Apache Kafka's scripts under their own names.",
)
