"""`zookeeper-shell host:2181 [command]`: `ottla zookeeper shell` by Apache Kafka's name.

`-zk-tls-config-file FILE` may precede the command.
"""

from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from ottla.base.errors import OttlaError
from ottla.base.loading import deferred_module, load
from ottla_scripts.printing import collects_sentences, err, out

# The usage needs neither click nor a client of ZooKeeper.
if TYPE_CHECKING:
    import click

    from ottla.tools import lazy
else:
    click = deferred_module("click")
    lazy = deferred_module("ottla.tools.lazy")

_TLS_FILE = "-zk-tls-config-file"


def run(name: str, command_line: list[str]) -> int:
    """Run one command, or read them from standard input."""
    if not command_line or command_line[0].startswith("-"):
        err(f"USAGE: {name} zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]")
        return 1
    address, *words = command_line
    line = ["--connect", address]
    if words[:1] == [_TLS_FILE]:
        if len(words) == 1:
            err(f"{_TLS_FILE} requires a file")
            return 1
        line += ["--tls-config", words[1]]
        words = words[2:]
    line += ["--", *words]
    if not collects_sentences():
        return _run(line)
    with redirect_stdout(StringIO()) as text:
        code = _run(line)
    out(text.getvalue())
    return code


def _run(line: list[str]) -> int:
    command = load("ottla.tools.zookeeper.shell", "command")
    lazy.refuse_unusable_texts(command)
    try:
        return int(command.main(line, prog_name="ottla zookeeper shell", standalone_mode=False))
    except click.Abort:
        return 130
    except click.ClickException as error:
        err(error.format_message())
        return 1
    except OttlaError as error:
        # The sentence of ZooKeeper's own shell.
        err(str(error))
        return 1
