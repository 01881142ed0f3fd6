"""`zookeeper-shell host:2181 [command]`: `ottla zookeeper shell` by Apache Kafka's name."""

from contextlib import redirect_stdout
from io import StringIO

from ottla.base.loading import load_module
from ottla.tools.scripts.printing import collects_sentences, err, out


def run(name: str, command_line: list[str]) -> int:
    """Run one command, or read them from standard input."""
    if not command_line or command_line[0].startswith("-"):
        err(f"USAGE: {name} zookeeper_host:port[/path] [args...]")
        return 1
    line = ["zookeeper", "shell", "--connect", command_line[0], *command_line[1:]]
    main = load_module("ottla.tools.main")
    if not collects_sentences():
        return int(main.run(line))
    with redirect_stdout(StringIO()) as text:
        code = int(main.run(line))
    out(text.getvalue())
    return code
