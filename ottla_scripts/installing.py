"""`ottla scripts install DIR` and `ottla scripts list`: Apache Kafka's names as files of a folder.

A file is three lines that start this Python. Files that this command did not write are never
replaced, so that an Apache Kafka in the same folder survives.
"""

import os
import shutil
import sys
from pathlib import Path

import click

from ottla.base.errors import OttlaError
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla_scripts.table import SCRIPTS

_MARK = "# Written by `ottla scripts install`."
_FORMS = ("", ".sh")


@click.command("install", short_help="Write the scripts to a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@options.formatted
def install(output: Output, folder: Path) -> None:
    """Write Apache Kafka's scripts to FOLDER: put it on PATH to use them.

    \b
    ottla scripts install ~/.local/share/ottla/bin
    """
    paths = [folder / f"{name}{form}" for name in SCRIPTS for form in _FORMS]
    foreign = [path for path in paths if path.exists() and not _is_ours(path)]
    if foreign:
        raise OttlaError(
            f"{foreign[0]} is not from this command, and nothing was written: choose another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.write_text(_content(path.name), encoding="utf-8")
        path.chmod(0o755)
    output.done(
        f"{len(SCRIPTS)} scripts are in {folder}.", folder=str(folder), scripts=list(SCRIPTS)
    )
    _warn_of_others(folder)


@click.command("list")
@options.formatted
def listing(output: Output) -> None:
    """List the scripts with the commands that do the same."""
    rows = [
        {"script": name, "command": f"ottla {row.verb}" if row.verb else "", "summary": row.summary}
        for name, row in SCRIPTS.items()
    ]
    output.rows(rows, ("script", "command", "summary"))


def _content(name: str) -> str:
    return f"#!{sys.executable}\n{_MARK}\nfrom ottla_scripts.entry import main; main({name!r})\n"


def _is_ours(path: Path) -> bool:
    return _MARK.encode() in path.read_bytes()[:4096]


def _warn_of_others(folder: Path) -> None:
    first_in_path = shutil.which("kafka-topics") or shutil.which("kafka-topics.sh")
    if first_in_path is None or not Path(first_in_path).parent.samefile(folder):
        note(f"To use them: export PATH={folder.absolute()}{os.pathsep}$PATH")
