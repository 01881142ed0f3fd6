"""Command lines of some of Apache Kafka's tools are read as argparse4j reads them."""

import pytest

from ottla_scripts.argparse4j import parse, require, require_one
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Flag, Spec, integer, long

pytestmark = pytest.mark.slow

SPEC = Spec(
    "A tool.",
    {
        "server": Flag("Brokers.", "address", short="b"),
        "controller": Flag("Controllers.", "address", short="C"),
        "count": Flag("A number.", "N", integer, default=-1),
        "size": Flag("A number.", "N", long),
        "acks": Flag("A choice.", "N", integer, choices=("0", "1")),
        "props": Flag("Some pairs.", "P", is_list=True),
        "verbose": Flag("A switch."),
    },
    program="tool",
)


@pytest.mark.parametrize(
    "words", [["-b", "a"], ["-ba"], ["--server", "a"], ["--server=a"], ["--ser", "a"]]
)
def test_option_has_a_short_and_a_long_form(words: list[str]) -> None:
    """`-b a`, `-ba`, `--server a`, `--server=a` and abbreviations are the same."""
    assert parse(SPEC, words)["server"] == "a"


def test_last_value_of_an_option_wins() -> None:
    """Twice the same option is no error; a list takes the words up to the next option."""
    options = parse(SPEC, ["--count", "1", "--props", "a=1", "b=2", "--count", "-2"])
    assert options["count"] == -2
    assert options.all("props") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--count", "x"], "argument --count: could not convert 'x' to Integer (For input string: \"x\")"),
        (["--size", "x"], "argument --size: could not convert 'x' to Long (For input string: \"x\")"),
        (["--acks", "7"], "argument --acks: invalid choice: '7' (choose from {0,1})"),
        (["-b"], "argument --server/-b: expected one argument"),
        (["-b", "--verbose"], "argument --server/-b: expected one argument"),
        (["--props"], "argument --props: expected 1 argument(s)"),
        (["--verbose=1"], "argument --verbose: ignore implicit argument '1'"),
        (["--c", "1"], "ambiguous option: --c could match --controller, --count"),
        (["--nonsense=1"], "unrecognized arguments: '--nonsense'"),
        (["-x"], "unrecognized arguments: '-x'"),
        (["--verbose", "some", "words"], "unrecognized arguments: 'some words'"),
    ],
)  # fmt: skip
def test_wrong_command_lines_have_argparse4js_sentences(words: list[str], sentence: str) -> None:
    """Errors are found before the tool runs."""
    with pytest.raises(UsageError) as caught:
        parse(SPEC, words)
    assert str(caught.value) == sentence


def test_missing_options_are_named_with_both_forms() -> None:
    """argparse4j names the last of several required options, and all of a group."""
    options = parse(SPEC, ["--verbose"])
    with pytest.raises(UsageError, match=r"^argument --server/-b is required$"):
        require(options, "count", "server")
    with pytest.raises(
        UsageError, match=r"^one of the arguments --server/-b --controller/-C is required$"
    ):
        require_one(options, "server", "controller")


def test_second_option_of_a_group_is_refused() -> None:
    """The error names the options in the order of the command line."""
    options = parse(SPEC, ["-C", "a", "-b", "b"])
    with pytest.raises(
        UsageError, match=r"^argument --server/-b: not allowed with argument --controller/-C$"
    ):
        require_one(options, "server", "controller")
