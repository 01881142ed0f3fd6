"""`ottla learn NAME`: explain Kafka by a scenario on a cluster in this process."""

import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.output import Output

_run = deferred("ottla.learn.showing", "run")
_ShowOptions = deferred("ottla.learn.showing", "ShowOptions")
_all_names = deferred("ottla.learn.showing", "all_names")
_list_exercises = deferred("ottla.learn.showing", "list_exercises")
_show_map = deferred("ottla.learn.showing", "show_map")
_names = deferred("ottla.learn.showing", "names")
_LANGUAGES = ("en", "zh")


def _complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _all_names() if name.startswith(incomplete)]


def _default_language() -> str:
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG")
                   if os.environ.get(name)), "")  # fmt: skip
    return "zh" if locale.startswith("zh") else "en"


@click.command("learn")
@click.argument("names", nargs=-1, shell_complete=_complete)
@click.option("--list", "is_list", is_flag=True, help="List the lessons.")
@click.option("--exercises", is_flag=True, help="List the exercises.")
@click.option("--map", is_flag=True, help="Show the path by level, and the lessons that are done.")
@click.option("--all", "is_all", is_flag=True, help="Run all lessons.")
@click.option("--step", is_flag=True, help="Wait for Enter after the question and each step.")
@click.option(
    "--read", is_flag=True, help="Show lessons without a question before the decisive step."
)
@click.option("--stay", is_flag=True, help="Keep the cluster of the lesson until Enter is pressed.")
@click.option(
    "--language",
    type=click.Choice(_LANGUAGES),
    default=_default_language,
    show_default="the terminal's",
    help="The language of the texts.",
)
@options.formatted
def command(
    output: Output,
    names: tuple[str, ...],
    is_list: bool,
    is_all: bool,
    step: bool,
    read: bool,
    language: str,
    **others: bool,
) -> Any:
    """Explain Kafka by experiments on a cluster that runs in this process.

    Without NAMES, list the lessons. On a terminal, a lesson asks for a prediction. The name
    `next` continues with the first lesson of the path that is not done (--map). An exercise
    (--exercises) has a goal, which the command checks on the cluster while you work in another
    terminal.

    \b
    ottla learn --list
    ottla learn --map
    ottla learn next
    ottla learn acks-1 --stay
    ottla learn rebalance --step --language zh
    ottla learn isr-to-three
    """
    if is_all and names:
        raise click.UsageError("--all runs every lesson: omit it to run the lessons that you name")
    if others["exercises"]:
        return _list_exercises(output, language)
    if others["map"]:
        return _show_map(output, language)
    chosen = tuple(_names()) if is_all else names
    options_of_show = _ShowOptions(language, waits=step, asks=not read, stays=others["stay"])
    return _run(output, () if is_list else chosen, options_of_show)
