"""`zookeeper-shell host:2181 [command]`: `ottla zookeeper shell` by Apache Kafka's name."""

from contextlib import redirect_stdout
from io import StringIO

from ottla.base.errors import OttlaError
from ottla.base.loading import load_module
from ottla.tools.scripts.printing import collects_sentences, err, out


def run(name: str, command_line: list[str]) -> int:
    """Run one command, or read them from standard input."""
    if not command_line or command_line[0].startswith("-"):
        err(f"USAGE: {name} zookeeper_host:port[/path] [args...]")
        return 1
    line = ["zookeeper", "shell", "--connect", command_line[0], *command_line[1:]]
    if not collects_sentences():
        return _run(line)
    with redirect_stdout(StringIO()) as text:
        code = _run(line)
    out(text.getvalue())
    return code


def _run(line: list[str]) -> int:
    main = load_module("ottla.tools.main")
    try:
        return int(main.root.main(line, prog_name="ottla", standalone_mode=False))
    except OttlaError as error:
        # The sentence of ZooKeeper's own shell.
        err(str(error))
        return 1
