"""Run one of Apache Kafka's scripts: the entry point of `kafka-topics`, `kafka-topics.sh`, ….

Exit codes are Apache Kafka's: 0 for success, 1 for failure, unless a tool says otherwise.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

from ottla.base.errors import OttlaError
from ottla.base.loading import load_module
from ottla_scripts import argparse4j
from ottla_scripts.exits import Exit, NoSuchFile, UsageError
from ottla_scripts.flags import COMMON, Flag, Spec, parse, split_output
from ottla_scripts.printing import err, ignore_closed_pipes, out, sentences_as_json
from ottla_scripts.table import KAFKA_VERSION, SCRIPTS, Script

_SUFFIXES = (".sh", ".bat", ".exe", ".py")
_LEFT = 34


def main(name: str | None = None) -> None:
    """Run the script of this name, by default the name of the file that was started, and exit."""
    script = _bare(name or Path(sys.argv[0]).name)
    ignore_closed_pipes()
    code = run(script, sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        err(f"{script}: {error.filename}: {error.strerror}")
        code = 1
    sys.stderr.flush()
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
    except KeyboardInterrupt:
        return 130
    except NoSuchFile as error:
        err(f"java.nio.file.NoSuchFileException: {error}")
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
    help_code = _help_code(module, spec, command_line)
    if help_code is not None:
        # argparse4j prints its help on standard output.
        _print_help(name, spec, out if spec.program else err)
        return help_code
    asks_version = _position_of(command_line, "version") is not None
    if asks_version or (spec.program and "-v" in command_line):
        out(KAFKA_VERSION)
        return 0
    handler = getattr(module, "on_parse_error", None)
    rewrite = getattr(module, "rewrite", None)
    try:
        if rewrite is not None:
            command_line = rewrite(command_line)
        without_zookeeper = _without_zookeeper(spec, command_line)
        options = (argparse4j.parse if spec.program else parse)(spec, without_zookeeper)
        options.used_zookeeper = without_zookeeper is not command_line
        with sentences_as_json() if options.is_json else nullcontext():
            return int(module.run(options))
    except UsageError as error:
        if error.is_parse_error and handler is not None:
            return int(handler(error))
        if spec.program:
            return argparse4j.print_usage_error(spec.program, error)
        raise


def _help_code(module: ModuleType, spec: Spec, command_line: list[str]) -> int | None:
    """Return the exit code if the help is to be printed, None otherwise."""
    if _position_of(command_line, "help") is not None or (spec.program and "-h" in command_line):
        return int(getattr(module, "HELP_CODE", 1))
    if command_line:
        return None
    if not spec.program:
        return 1
    # Without a subcommand there is an error instead.
    return None if "action" in spec.flags else 0


def _run_plain(module: ModuleType, name: str, command_line: list[str]) -> int:
    """Run a script that reads its command line itself, apart from `--output json`."""
    rest, is_json = split_output(command_line)
    if not is_json or getattr(module, "READS_OUTPUT", False):
        return int(module.run(name, command_line))
    with sentences_as_json():
        return int(module.run(name, rest))


def _without_zookeeper(spec: Spec, command_line: list[str]) -> list[str]:
    """Replace `--zookeeper` by the brokers that are registered there."""
    names = [name for name, old in spec.old.items() if old.from_zookeeper]
    at = next((at for name in names if (at := _position_of(command_line, name)) is not None), None)
    if at is None:
        return command_line
    aliases = [name for name, old in spec.old.items() if old.new == "bootstrap-server"]
    lookup = load_module(f"{__package__}.servers.zookeeper_lookup")
    result = lookup.replace_zookeeper(
        command_line, at, ["bootstrap-server", *(name for name in aliases if name not in names)]
    )
    return list(result)


def _position_of(command_line: Sequence[str], name: str) -> int | None:
    """Return the place of an option in a command line, with or without `=value`."""
    forms = (f"-{name}", f"--{name}")
    return next(
        (at for at, word in enumerate(command_line) if word.partition("=")[0] in forms), None
    )


def _print_help(name: str, spec: Spec, write: Callable[[str], None]) -> None:
    if spec.program:
        subcommands = f"{spec.flags['action'].help} " if "action" in spec.flags else ""
        write(f"usage: {name} {subcommands}…")
    write(spec.summary)
    write(f"{'Option':<{_LEFT}} Description")
    write(f"{'------':<{_LEFT}} -----------")
    for option, flag in sorted({**spec.flags, **COMMON}.items()):
        write(f"{_usage(option, flag):<{_LEFT}} {flag.help}".rstrip())
    for option, old in sorted(spec.old.items()):
        meaning = old.notice.partition("; ")[2].format(new=old.new) or f"the same as --{old.new}."
        write(f"{f'--{option}':<{_LEFT}} Of an earlier version: {meaning}")


def _usage(name: str, flag: Flag) -> str:
    if flag.short:
        name = f"{name}, -{flag.short}"
    if not flag.value:
        return f"--{name}"
    return f"--{name} [{flag.value}]" if flag.is_optional else f"--{name} <{flag.value}>"


def _bare(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name
