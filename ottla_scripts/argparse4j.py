"""Command lines as argparse4j reads them, the library under `kafka-cluster` and some other tools.

Options may have a short form (`-b host:port`, `-bhost:port`). Arguments are converted at once.
Other words are errors. `subcommands` checks which options precede the subcommand.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ottla_scripts.exits import UsageError
from ottla_scripts.flags import COMMON, Flag, Options, Spec, check_output, integer, long
from ottla_scripts.printing import err

_JAVA_TYPES: Mapping[Callable[[str], Any], str] = {
    integer: "Integer",
    long: "Long",
    float: "Double",
}


def parse(spec: Spec, command_line: Sequence[str]) -> Options:
    """Read a command line; errors are UsageError with argparse4j's sentences."""
    options = Options(spec, _Reader(spec, command_line).read())
    for form in options.all("output"):
        check_output(form)
    return options


def print_usage_error(program: str, error: UsageError) -> int:
    """Print an error as argparse4j does, below a line of usage, and return the exit code."""
    err(f"usage: {program} [-h] …")
    err(f"{program}: error: {error}")
    return 1


def require(options: Options, *names: str) -> None:
    """Raise UsageError unless all of these options were given; it names the last that was not."""
    for name in reversed(names):
        if name not in options:
            _refuse(f"argument {_title(name, options.spec.flags[name])} is required")


def require_one(options: Options, *names: str) -> None:
    """Raise UsageError unless exactly one of these options was given."""
    if not any(name in options for name in names):
        titles = (_title(name, options.spec.flags[name]) for name in names)
        _refuse(f"one of the arguments {' '.join(titles)} is required")
    allow_one(options, *names)


def allow_one(options: Options, *names: str) -> None:
    """Raise UsageError if more than one of these options were given."""
    given = dict.fromkeys(name for name, _ in options.occurrences if name in names)
    titles = [_title(name, options.spec.flags[name]) for name in given]
    if len(titles) > 1:
        _refuse(f"argument {titles[1]}: not allowed with argument {titles[0]}")


class _Reader:
    """One pass over the words of a command line."""

    def __init__(self, spec: Spec, command_line: Sequence[str]) -> None:
        self._flags: Mapping[str, Flag] = {**spec.flags, **COMMON}
        self._old = spec.old
        self._shorts = {flag.short: name for name, flag in self._flags.items() if flag.short}
        self._words = list(command_line)
        self._occurrences: list[tuple[str, str | None]] = []

    def read(self) -> list[tuple[str, str | None]]:
        while self._words:
            word = self._words.pop(0)
            if word == "--":
                continue
            if word.startswith("--"):
                typed, has_value, value = word[2:].partition("=")
                self._read_option(word, self._resolve(typed), value if has_value else None)
            elif word[1:2] in self._shorts and word.startswith("-"):
                self._read_option(word, self._shorts[word[1]], word[2:] or None)
            else:
                rest = [] if word.startswith("-") else self._words
                _refuse(f"unrecognized arguments: '{' '.join([word, *rest])}'")
        return self._occurrences

    def _read_option(self, word: str, name: str, value: str | None) -> None:
        flag = self._flags.get(name)
        if flag is None:
            _refuse(f"unrecognized arguments: '{word.partition('=')[0]}'")
        title = _title(name, flag)
        if not flag.value:
            if value is not None:
                _refuse(f"argument {title}: ignore implicit argument '{value}'")
            self._occurrences.append((name, None))
            return
        values = [value] if value is not None else self._arguments(flag)
        if not values:
            count = "1 argument(s)" if flag.is_list else "one argument"
            _refuse(f"argument {title}: expected {count}")
        for text in values:
            _check(title, flag, text)
            self._occurrences.append((name, text))

    def _arguments(self, flag: Flag) -> list[str]:
        """Remove the arguments of an option from the words; `-5` is one, `-b` is not."""
        values: list[str] = []
        while self._words and (flag.is_list or not values) and _is_argument(self._words[0]):
            values.append(self._words.pop(0))
        return values

    def _resolve(self, typed: str) -> str:
        """Return the name of an option from its abbreviation; unknown ones are unchanged."""
        if typed in self._flags:
            return typed
        if typed in self._old:
            old = self._old[typed]
            err(old.notice.format(old=typed, new=old.new))
            return old.new
        matches = sorted(name for name in self._flags if name.startswith(typed))
        if len(matches) > 1:
            listed = ", ".join(f"--{name}" for name in matches)
            _refuse(f"ambiguous option: --{typed} could match {listed}")
        return matches[0] if matches else typed


def _is_argument(word: str) -> bool:
    return not word.startswith("-") or word == "-" or word[1:].isdecimal()


def _check(title: str, flag: Flag, text: str) -> None:
    if flag.choices and text not in flag.choices:
        _refuse(
            f"argument {title}: invalid choice: '{text}' (choose from {{{','.join(flag.choices)}}})"
        )
    try:
        flag.convert(text)
    except ValueError:
        kind = _JAVA_TYPES.get(flag.convert, "String")
        _refuse(
            f"argument {title}: could not convert '{text}' to {kind} (For input string: \"{text}\")"
        )


def _title(name: str, flag: Flag) -> str:
    return f"--{name}/-{flag.short}" if flag.short else f"--{name}"


def _refuse(sentence: str) -> NoReturn:
    raise UsageError(sentence, is_parse_error=True)
