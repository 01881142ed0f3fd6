"""Command lines of Apache Kafka's tools are read as joptsimple reads them."""

import pytest

from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import Flag, Old, Spec, integer, pairs, parse

SPEC = Spec(
    "A tool.",
    {
        "topic": Flag("A topic.", "topic"),
        "timeout": Flag("A time.", "ms", integer, default=5),
        "list": Flag("A switch."),
        "state": Flag("An optional value.", "state", is_optional=True),
    },
    {"broker-list": Old("topic"), "new-consumer": Old("list", "")},
)


def test_values_follow_the_option_or_an_equals_sign() -> None:
    """Both forms and unambiguous abbreviations are read; other words are ignored."""
    options = parse(SPEC, ["--topic", "a", "--time=7", "other", "--list"])
    assert (options["topic"], options["timeout"], "list" in options) == ("a", 7, True)


def test_missing_options_have_their_defaults() -> None:
    """An option that was not given has the default of the tool, or None."""
    options = parse(SPEC, [])
    assert (options["timeout"], options["topic"], "timeout" in options) == (5, None, False)


def test_optional_value_ends_at_the_next_option() -> None:
    """`--state --list` has a state without a value, `--state Stable` has one."""
    assert parse(SPEC, ["--state", "--list"])["state"] is None
    assert parse(SPEC, ["--state", "Stable"])["state"] == "Stable"


def test_required_value_may_start_with_a_dash() -> None:
    """`--timeout -1` is a negative number."""
    assert parse(SPEC, ["--timeout", "-1"])["timeout"] == -1


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["--nonsense"], "nonsense is not a recognized option"),
        (["-x"], "x is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--list=1"], "Option list does not accept an argument"),
        (["--t", "a"], "t is not an unambiguous option"),
    ],
)
def test_wrong_command_lines_have_joptsimples_sentences(
    command_line: list[str], sentence: str
) -> None:
    """Scripts compare these sentences."""
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        parse(SPEC, command_line)


def test_value_that_cannot_be_converted_is_reported_when_it_is_used() -> None:
    """joptsimple converts late, and tools print its error in their own form."""
    options = parse(SPEC, ["--timeout", "soon"])
    with pytest.raises(UsageError, match="Cannot parse argument 'soon' of option timeout"):
        options["timeout"]


def test_option_given_twice_is_an_error_if_one_value_is_needed() -> None:
    """`all` returns both values."""
    options = parse(SPEC, ["--topic", "a", "--topic", "b"])
    assert options.all("topic") == ["a", "b"]
    with pytest.raises(UsageError, match="Found multiple arguments for option topic"):
        options["topic"]


def test_flag_of_an_earlier_version_names_its_successor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The old flag works, and standard error has the modern one."""
    assert parse(SPEC, ["--broker-list", "a"])["topic"] == "a"
    assert capsys.readouterr().err == (
        "Option --broker-list is from an earlier version; use --topic instead.\n"
    )
    parse(SPEC, ["--new-consumer"])
    assert capsys.readouterr().err == ""


def test_properties_split_at_the_first_equals_sign() -> None:
    """A value may contain more of them, or be missing."""
    assert pairs(["a=b=c", "d"]) == {"a": "b=c", "d": ""}
