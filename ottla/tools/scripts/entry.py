"""Run one of Apache Kafka's scripts: the entry point of `kafka-topics`, `kafka-topics.sh`, ….

Exit codes are Apache Kafka's: 0 for success, 1 for failure, unless a tool says otherwise.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

from ottla.base.errors import OttlaError
from ottla.base.loading import load_module
from ottla.tools.scripts.exits import Exit, UsageError
from ottla.tools.scripts.flags import COMMON, Flag, Spec, parse, split_output
from ottla.tools.scripts.printing import err, out, sentences_as_json
from ottla.tools.scripts.table import KAFKA_VERSION, SCRIPTS, Script

_SUFFIXES = (".sh", ".bat", ".exe", ".py")
_LEFT = 34


def main(name: str | None = None) -> None:
    """Run the script of this name, by default that of the file that was started, and exit."""
    script = _bare(name or Path(sys.argv[0]).name)
    code = run(script, sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    # Threads of a client that is still closing must not delay the end.
    os._exit(code)


def run(name: str, command_line: Sequence[str]) -> int:
    """Run a script with the rest of a command line and return its exit code."""
    script = SCRIPTS.get(_bare(name))
    if script is None:
        err(f"{name} is not a script of Apache Kafka; `ottla scripts list` lists them")
        return 1
    try:
        return _run(_bare(name), script, list(command_line))
    except Exit as end:
        return end.code
    except UsageError as error:
        err(str(error))
        err(f"For the options: {_bare(name)} --help")
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
    except OttlaError as error:
        err(f"{_bare(name)}: {error}")
    except OSError as error:
        err(f"{_bare(name)}: {error.filename or ''}: {error.strerror or error}")
    return 1


def _run(name: str, script: Script, command_line: list[str]) -> int:
    module = load_module(script.module)
    target = getattr(module, "target", None)
    if target is not None:
        # kafka-run-class names another script.
        target_script = target(command_line)
        return (
            1
            if target_script is None
            else _run(target_script[0], SCRIPTS[target_script[0]], target_script[1])
        )
    spec: Spec | None = getattr(module, "SPEC", None)
    if spec is None:
        return _run_plain(module, name, command_line)
    if not command_line or _position_of(command_line, "help") is not None:
        _print_help(name, spec)
        return 1
    if _position_of(command_line, "version") is not None:
        out(KAFKA_VERSION)
        return 0
    used_zookeeper = _position_of(command_line, "zookeeper") is not None
    if "zookeeper" in spec.old:
        command_line = _without_zookeeper(command_line)
    handler = getattr(module, "on_parse_error", None)
    rewrite = getattr(module, "rewrite", None)
    if rewrite is not None:
        command_line = rewrite(command_line)
    try:
        options = parse(spec, command_line)
        options.used_zookeeper = used_zookeeper
        with sentences_as_json() if options.is_json else nullcontext():
            return int(module.run(options))
    except UsageError as error:
        if error.is_parse_error and handler is not None:
            return int(handler(error))
        raise


def _run_plain(module: ModuleType, name: str, command_line: list[str]) -> int:
    """Run a script that reads its command line itself, apart from `--output json`."""
    rest, is_json = split_output(command_line)
    if not is_json or getattr(module, "READS_OUTPUT", False):
        return int(module.run(name, command_line))
    with sentences_as_json():
        return int(module.run(name, rest))


def _without_zookeeper(command_line: list[str]) -> list[str]:
    """Replace `--zookeeper` by the brokers that are registered there."""
    at = _position_of(command_line, "zookeeper")
    if at is None:
        return command_line
    _, has_value, address = command_line[at].partition("=")
    following = command_line[at + 1 :]
    if not has_value:
        if not following:
            return command_line
        address, *following = following
    remaining = [*command_line[:at], *following]
    if _position_of(remaining, "bootstrap-server") is not None:
        err("Option --zookeeper is ignored: --bootstrap-server names the brokers.")
        return remaining
    brokers = load_module(f"{__package__}.servers.zookeeper_lookup").find_brokers(address)
    err(f"Option --zookeeper is from an earlier version; use --bootstrap-server {brokers} instead.")
    return [*remaining, "--bootstrap-server", brokers]


def _position_of(command_line: Sequence[str], name: str) -> int | None:
    """Return the place of an option in a command line, with or without `=value`."""
    forms = (f"-{name}", f"--{name}")
    return next(
        (at for at, word in enumerate(command_line) if word.partition("=")[0] in forms), None
    )


def _print_help(name: str, spec: Spec) -> None:
    if "action" in spec.flags:
        # argparse4j's tools begin with a line of usage.
        err(f"usage: {name} {spec.flags['action'].help} …")
    err(spec.summary)
    err(f"{'Option':<{_LEFT}} Description")
    err(f"{'------':<{_LEFT}} -----------")
    for name, flag in sorted({**spec.flags, **COMMON}.items()):
        err(f"{_usage(name, flag):<{_LEFT}} {flag.help}".rstrip())


def _usage(name: str, flag: Flag) -> str:
    if not flag.value:
        return f"--{name}"
    return f"--{name} [{flag.value}]" if flag.is_optional else f"--{name} <{flag.value}>"


def _bare(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name
