"""Command lines as joptsimple reads them, the library under most of Apache Kafka's tools.

`--name value`, `--name=value`, either with one dash, options that may be repeated. Names are
complete: the tools allow no abbreviations (CommandDefaultOptions). Other words of a command line
are ignored. Errors have joptsimple's sentences, because scripts look for them. A flag of an earlier
generation (KIP-1147 and before) is read as its successor, which is named on standard error.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ottla.base.loading import deferred
from ottla_scripts.exits import UsageError
from ottla_scripts.printing import err, out

# Only errors need them.
_hash_order = deferred("ottla_scripts.java_order", "hash_order")
_java_string_hash = deferred("ottla.cluster.jvm_order", "java_string_hash")
Convert = Callable[[str], Any]


class Flag(NamedTuple):
    """One option. `value` names its argument in the help; it takes none if `value` is empty."""

    help: str
    value: str = ""
    convert: Convert = str
    is_optional: bool = False
    default: Any = None
    # Its values are all words up to the next option.
    is_list: bool = False
    # The option is allowed only with one of these.
    only_with: Sequence[str] = ()
    # argparse4j only: a letter in place of the name, and the values that are allowed.
    short: str = ""
    choices: Sequence[str] = ()


class Old(NamedTuple):
    """The successor of a flag of an earlier generation, and the notice that names it.

    `notice` has `{old}` and `{new}`; without one, the flag is accepted silently. A flag without
    effect has no successor: `new` is empty, and `has_value` says whether an argument follows.
    `from_zookeeper`: the argument is a ZooKeeper, in which the brokers are looked up.
    """

    new: str
    notice: str = "Option --{old} is from an earlier version; use --{new} instead."
    has_value: bool = False
    from_zookeeper: bool = False


DEPRECATED = (
    "Option --{old} has been deprecated and will be removed in a future version. "
    "Use --{new} instead."
)
_OUTPUTS = ("text", "json")
WITHOUT_EFFECT = Old("", "Option --{old} is from an earlier version; it has no effect.")
VALUE_WITHOUT_EFFECT = WITHOUT_EFFECT._replace(has_value=True)
ZOOKEEPER = Old("bootstrap-server", from_zookeeper=True)
# The TLS file of the ZooKeeper, which the lookup of the brokers has read.
ZOOKEEPER_FILE = VALUE_WITHOUT_EFFECT._replace(
    notice="Option --{old} is from an earlier version; it has no effect without --zookeeper."
)
# Options that every tool has.
COMMON: Mapping[str, Flag] = {
    "help": Flag("Print the options."),
    "version": Flag("Print the version of Apache Kafka that is followed."),
    "output": Flag("`json` prints the result as JSON (an extension of Ottla).", "format"),
}
BOOTSTRAP = Flag("The brokers to connect to, as in host1:9092,host2:9092.", "server to connect to")
CONTROLLERS = Flag("The KRaft controllers to connect to.", "controller to connect to")
COMMAND_CONFIG = Flag("A properties file with options of the client.", "config file")


class Spec(NamedTuple):
    """The options of one tool.

    `program` is its name in errors of argparse4j, empty if joptsimple reads its command line.
    """

    summary: str
    flags: Mapping[str, Flag]
    old: Mapping[str, Old] = {}
    program: str = ""


class Options:
    """The options of one command line; `occurrences` has each as it was typed, in order."""

    def __init__(self, spec: Spec, occurrences: Sequence[tuple[str, str | None]]) -> None:
        self.spec = spec
        self.occurrences = occurrences
        self.used_zookeeper = False
        """True if --zookeeper named the brokers: some tools printed more then."""
        self._values: dict[str, list[str | None]] = {}
        for name, value in occurrences:
            self._values.setdefault(name, []).append(value)

    @property
    def is_json(self) -> bool:
        """True if JSON is wanted instead of Apache Kafka's output."""
        return "json" in self._values.get("output", [])

    def __contains__(self, name: str) -> bool:
        """Return True if the option was given."""
        return name in self._values

    def __getitem__(self, name: str) -> Any:
        """Return the only value of an option, or its default. UsageError if it is given twice."""
        values = self._values.get(name)
        if values is None:
            return self.spec.flags[name].default if name in self.spec.flags else None
        if len(values) > 1 and not self.spec.program:
            raise UsageError(
                f"Found multiple arguments for option {name}, but you asked for only one",
                is_parse_error=True,
            )
        return self._converted(name, values[-1])

    def all(self, name: str) -> list[Any]:
        """Return the values of an option that may be repeated."""
        values = self._values.get(name, [])
        return [self._converted(name, value) for value in values if value is not None]

    def _converted(self, name: str, value: str | None) -> Any:
        if value is None:
            return None
        flag = self.spec.flags.get(name)
        try:
            return value if flag is None else flag.convert(value)
        except ValueError:
            raise UsageError(
                f"Cannot parse argument '{value}' of option {name}", is_parse_error=True
            ) from None

    def rename(self, old: str, new: str, notice: str = DEPRECATED) -> None:
        """Read a deprecated option as its successor; a notice on standard output names that."""
        if old in self:
            out(notice.format(old=old, new=new))
            self._values[new] = self._values.pop(old)

    def require(self, *names: str) -> None:
        """Raise UsageError unless all of these options were given."""
        for name in names:
            if name not in self:
                raise UsageError(f'Missing required argument "[{name}]"')

    def forbid(self, used: str, *others: str) -> None:
        """Raise UsageError if `used` was given together with one of `others`."""
        for other in others:
            if used in self and other in self:
                raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')


def parse(spec: Spec, command_line: Sequence[str]) -> Options:
    """Read a command line; errors are UsageError with joptsimple's sentences."""
    options = Options(spec, _Reader(spec, command_line).read())
    _check_available(options)
    for form in options.all("output"):
        check_output(form)
    return options


def _check_available(options: Options) -> None:
    unavailable = [
        name
        for name, flag in options.spec.flags.items()
        if name in options and flag.only_with and not any(map(options.__contains__, flag.only_with))
    ]
    if unavailable:
        # joptsimple keeps them in a HashMap, by lists of names.
        names = _hash_order(unavailable, lambda name: (31 + _java_string_hash(name)) & 0xFFFFFFFF)
        _refuse(
            f"Option(s) [{', '.join(names)}] are unavailable given other options on the command line"
        )


def integer(text: str) -> int:
    """Convert an argument to a 32-bit number, as Integer.parseInt does."""
    return _number(text, 32)


def long(text: str) -> int:
    """Convert an argument to a 64-bit number, as Long.parseLong does."""
    return _number(text, 64)


def _number(text: str, bits: int) -> int:
    # Python's int also allows spaces, and underscores between digits.
    value = int(text) if text.removeprefix("-").removeprefix("+").isdecimal() else None
    if value is None or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def pairs(values: Sequence[str]) -> dict[str, str]:
    """Return `key=value` options as a dictionary; a missing value is empty."""
    return {name: value for name, _, value in (text.partition("=") for text in values)}


def split_output(command_line: Sequence[str]) -> tuple[list[str], bool]:
    """Remove `--output json`, for scripts without Spec: the rest, and True if it was there."""
    rest: list[str] = []
    is_json = False
    words = iter(command_line)
    for word in words:
        name, has_value, form = word.partition("=")
        if name != "--output":
            rest.append(word)
            continue
        form = form if has_value else next(words, "")
        check_output(form)
        is_json = is_json or form == "json"
    return rest, is_json


def check_output(form: str) -> None:
    """Raise UsageError unless --output has a form that exists."""
    if form not in _OUTPUTS:
        _refuse(f"--output must be {' or '.join(_OUTPUTS)}, not '{form}'")


class _Reader:
    """One pass over the words of a command line."""

    def __init__(self, spec: Spec, command_line: Sequence[str]) -> None:
        self._old = spec.old
        self._flags = {**spec.flags, **COMMON}
        self._command_line = list(command_line)
        self._at = 0
        self._occurrences: list[tuple[str, str | None]] = []

    def read(self) -> list[tuple[str, str | None]]:
        while self._at < len(self._command_line):
            word = self._command_line[self._at]
            self._at += 1
            if word == "--":
                break
            if word.startswith("--") and len(word) > 2:
                self._read_option(word[2:])
            elif word.startswith("-") and len(word) > 1:
                # joptsimple reads `-name` as `--name`; it takes other words for single letters.
                if not self._is_known(word[1:].partition("=")[0]):
                    _refuse(f"{word[1]} is not a recognized option")
                self._read_option(word[1:])
        return self._occurrences

    def _read_option(self, text: str) -> None:
        typed, has_value, value = text.partition("=")
        name = self._resolve(typed)
        if not name:
            self._skip(typed, bool(has_value))
            return
        flag = self._flags[name]
        if not flag.value:
            # joptsimple ignores the argument of `--list=true`.
            self._occurrences.append((name, None))
            return
        if not has_value:
            if flag.is_optional and not self._has_optional(flag):
                self._occurrences.append((name, None))
                return
            if self._at >= len(self._command_line):
                _refuse(f"Option {name} requires an argument")
            value = self._command_line[self._at]
            self._at += 1
        self._occurrences.append((name, value))
        while flag.is_list and self._has_argument():
            self._occurrences.append((name, self._command_line[self._at]))
            self._at += 1

    def _skip(self, typed: str, has_value: bool) -> None:
        """Ignore an option without effect, with its argument."""
        if not self._old[typed].has_value:
            if has_value:
                _refuse(f"Option {typed} does not accept an argument")
        elif not has_value:
            if self._at >= len(self._command_line):
                _refuse(f"Option {typed} requires an argument")
            self._at += 1

    def _has_optional(self, flag: Flag) -> bool:
        """Return True if the next word is the value of an option whose value is optional.

        The value of a number is any word that can be converted, also a negative number.
        """
        if flag.convert is str or self._at >= len(self._command_line):
            return self._has_argument()
        try:
            flag.convert(self._command_line[self._at])
        except ValueError:
            return False
        return True

    def _has_argument(self) -> bool:
        return self._at < len(self._command_line) and not self._command_line[self._at].startswith(
            "-"
        )

    def _is_known(self, name: str) -> bool:
        return name in self._flags or name in self._old

    def _resolve(self, typed: str) -> str:
        """Return the option's name; it is empty if the flag has no effect any more."""
        if typed in self._flags:
            return typed
        old = self._old.get(typed)
        if old is not None:
            if old.notice:
                err(old.notice.format(old=typed, new=old.new))
            return old.new
        return _refuse(f"{typed} is not a recognized option")


def _refuse(sentence: str) -> NoReturn:
    raise UsageError(sentence, is_parse_error=True)
