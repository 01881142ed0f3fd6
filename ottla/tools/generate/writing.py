"""The target of a generated file: standard output, or a file that does not exist yet."""

from collections.abc import Callable, Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.base.errors import ConfigError
from ottla.tools.output import note

F = TypeVar("F", bound=Callable[..., Any])


def destination(function: F) -> F:
    """Add the options `--to` and `--force` to a command."""
    function = click.option("--force", is_flag=True, help="Replace the file of --to if it exists.")(
        function
    )
    return click.option(
        "--to",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write to a file instead of standard output.",
    )(function)


def write(text: str, path: Path | None, *, force: bool) -> None:
    """Write a generated text; raises ConfigError if the file exists, unless `force`."""
    if path is None:
        click.echo(text, nl=False)
        return
    if path.exists() and not force:
        raise ConfigError(f"{path} exists: add --force to replace it, or name another file.")
    path.write_text(text, "utf-8")
    note(f"Wrote {path}.")


def yaml(value: Mapping[str, object]) -> str:
    """Return a mapping as YAML; its texts are in JSON's quotes, which are YAML's too."""
    return "".join(_lines(value, ""))


def _lines(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _item(f"{indent}{key}:", item, indent)
    elif isinstance(value, list | tuple):
        for item in value:
            lines = list(_lines(item, indent + "  "))
            yield f"{indent}- {lines[0].removeprefix(indent + '  ')}"
            yield from lines[1:]
    else:
        yield f"{indent}{dumps(value, ensure_ascii=False)}\n"


def _item(head: str, item: object, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping | list | tuple) and item:
        yield f"{head}\n"
        yield from _lines(item, indent + "  ")
    else:
        yield f"{head} {dumps(item, ensure_ascii=False)}\n"
