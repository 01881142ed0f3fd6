"""The target of a generated file: standard output, or a file that does not exist yet.

With --output json, standard output has the document as JSON, or the name of the file.
"""

from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path

import click

from ottla.base.errors import ConfigError
from ottla.tools import options
from ottla.tools.output import Output, note

_force = click.option("--force", is_flag=True, help="Replace the file of --to if it exists.")
_to = click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to a file instead of standard output.",
)


def destination(function: options.Function) -> options.Function:
    """Add the options `--to`, `--force` and `--output` to a command."""
    for add in (options.formatted, _force, _to):
        function = add(function)
    return function


def write(
    output: Output, document: Mapping[str, object], text: str, path: Path | None, *, force: bool
) -> None:
    """Write a generated text to a file or to standard output; `document` is the same for JSON.

    Raises ConfigError if the file exists, unless `force`.
    """
    if path is None:
        click.echo(json_of(document) if output.is_json else text, nl=False)
        return
    if path.exists() and not force:
        raise ConfigError(f"{path} exists: add --force to replace it, or name another file.")
    path.write_text(text, "utf-8")
    if output.is_json:
        output.done("", file=str(path))
    else:
        note(f"Wrote {path}.")


def json_of(document: Mapping[str, object]) -> str:
    """Return a document as JSON in several lines."""
    return dumps(document, indent=2, ensure_ascii=False) + "\n"


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
