"""Command lines of Apache Kafka's tools are read as joptsimple reads them."""

import pytest

from ottla.base.loading import load_module
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    Flag,
    Old,
    Spec,
    integer,
    long,
    pairs,
    parse,
    split_output,
)
from ottla_scripts.table import SCRIPTS

pytestmark = pytest.mark.slow

SPEC = Spec(
    "A tool.",
    {
        "topic": Flag("A topic.", "topic"),
        "timeout": Flag("A time.", "ms", integer, default=5),
        "list": Flag("A switch."),
        "state": Flag("An optional value.", "state", is_optional=True),
    },
    {"broker-list": Old("topic"), "all": Old("list", ""), "new-consumer": WITHOUT_EFFECT},
)


def test_values_follow_the_option_or_an_equals_sign() -> None:
    """Both forms are read; other words are ignored."""
    options = parse(SPEC, ["--topic", "a", "--timeout=7", "other", "--list"])
    assert (options["topic"], options["timeout"], "list" in options) == ("a", 7, True)


def test_missing_options_have_their_defaults() -> None:
    """An option that was not given has the default of the tool, or None."""
    options = parse(SPEC, [])
    assert (options["timeout"], options["topic"], "timeout" in options) == (5, None, False)


def test_optional_value_ends_at_the_next_option() -> None:
    """`--state --list` has a state without a value, `--state Stable` has one."""
    assert parse(SPEC, ["--state", "--list"])["state"] is None
    assert parse(SPEC, ["--state", "Stable"])["state"] == "Stable"


@pytest.mark.parametrize(
    ("words", "value"),
    [(["-1"], -1), (["7"], 7), (["soon"], None), (["--list"], None), ([], None)],
)
def test_optional_number_is_the_next_word_if_that_is_a_number(
    words: list[str], value: int | None
) -> None:
    """As with joptsimple, it may be negative, and another word is not the option's value."""
    spec = Spec("", {"period": Flag("A period.", "ms", long, is_optional=True), "list": Flag("")})
    assert parse(spec, ["--period", *words])["period"] == value


def test_required_value_may_start_with_a_dash() -> None:
    """`--timeout -1` is a negative number."""
    assert parse(SPEC, ["--timeout", "-1"])["timeout"] == -1


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["--nonsense"], "nonsense is not a recognized option"),
        (["-x"], "x is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--t", "a"], "t is not a recognized option"),
        (["--lis"], "lis is not a recognized option"),
        (["--time=7"], "time is not a recognized option"),
    ],
)
def test_wrong_command_lines_have_joptsimples_sentences(
    command_line: list[str], sentence: str
) -> None:
    """Scripts compare these sentences."""
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        parse(SPEC, command_line)


def test_argument_of_an_option_without_values_is_ignored() -> None:
    """The words `--list=true` and `--list=1` are `--list`, as joptsimple reads them."""
    for word in ("--list=true", "-list=1", "--list="):
        assert list(parse(SPEC, [word]).occurrences) == [("list", None)]


@pytest.mark.parametrize("text", [" 2", "2 ", "1_000", "", "+", "2.0", "2147483648"])
def test_number_is_converted_as_in_java(text: str) -> None:
    """Spaces and underscores, which Python allows, are refused."""
    with pytest.raises(ValueError, match=r".*"):
        integer(text)
    assert (integer("-7"), integer("+7")) == (-7, 7)


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
    parse(SPEC, ["--all"])
    assert capsys.readouterr().err == ""


def test_flag_without_successor_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """`--new-consumer` selected what is the only consumer today."""
    options = parse(SPEC, ["--new-consumer", "--topic", "a"])
    assert list(options.occurrences) == [("topic", "a")]
    assert capsys.readouterr().err == (
        "Option --new-consumer is from an earlier version; it has no effect.\n"
    )
    with pytest.raises(UsageError, match=r"^Option new-consumer does not accept an argument$"):
        parse(SPEC, ["--new-consumer=true"])


def test_flag_without_successor_is_skipped_with_its_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--offsets 1` of GetOffsetShell: the value is no other word of the command line."""
    spec = SPEC._replace(old={"offsets": VALUE_WITHOUT_EFFECT})
    for words in (["--offsets", "1"], ["--offsets=1"], ["--offsets", "--list"]):
        options = parse(spec, [*words, "--topic", "a"])
        assert list(options.occurrences) == [("topic", "a")]
        assert capsys.readouterr().err == (
            "Option --offsets is from an earlier version; it has no effect.\n"
        )
    with pytest.raises(UsageError, match=r"^Option offsets requires an argument$"):
        parse(spec, ["--offsets"])


# All other flags of earlier versions have a value.
_OLD_SWITCHES = {
    "new-consumer", "new.consumer", "new-producer", "new.producer", "old-producer", "execute",
    "delete-consumer-offsets", "csv-reporter-enabled", "disable-rack-aware", "force",
}  # fmt: skip


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_old_flags_and_their_successors_take_a_value_alike(name: str) -> None:
    """The successor exists; without it, the old flag is a switch without effect."""
    spec = getattr(load_module(SCRIPTS[name].module), "SPEC", Spec("", {}))
    for typed, old in spec.old.items():
        has_value = bool(spec.flags[old.new].value) if old.new else old.has_value
        assert has_value == (typed not in _OLD_SWITCHES), typed


@pytest.mark.parametrize(
    "command_line",
    [["-topic", "a", "-list"], ["-topic=a", "-list"], ["-broker-list", "a", "--list"]],
)
def test_options_may_have_one_dash(command_line: list[str]) -> None:
    """`kafka-topics.sh -list` is a form of old documents; it must be the whole name."""
    options = parse(SPEC, command_line)
    assert (options["topic"], "list" in options) == ("a", True)
    with pytest.raises(UsageError, match=r"^t is not a recognized option$"):
        parse(SPEC, ["-topi", "a"])


@pytest.mark.parametrize("words", [["--output", "yaml"], ["--output=yaml"]])
def test_unknown_form_of_output_is_refused(words: list[str]) -> None:
    """Text instead of the requested form would confuse the program that reads it."""
    for read in (lambda: parse(SPEC, words), lambda: split_output(words)):
        with pytest.raises(UsageError, match=r"^--output must be text or json, not 'yaml'$"):
            read()


def test_output_is_read_with_an_equals_sign_too() -> None:
    """`--output=json` and `--output json` are the same."""
    assert parse(SPEC, ["--output=json"]).is_json
    assert not parse(SPEC, ["--output=text"]).is_json
    assert split_output(["a", "--output=json", "b"]) == (["a", "b"], True)
    assert split_output(["a", "--output", "text"]) == (["a"], False)


def test_properties_split_at_the_first_equals_sign() -> None:
    """A value may contain more of them, or be missing."""
    assert pairs(["a=b=c", "d"]) == {"a": "b=c", "d": ""}


def test_option_that_needs_another_option_is_unavailable_without_it() -> None:
    """The sentence names all such options, in the order of Java's hash map."""
    needs = ("describe", "list")
    flags = {name: Flag("Detail.", only_with=needs) for name in ("members", "verbose", "state")}
    spec = Spec("A tool.", {"describe": Flag("A switch."), "list": Flag("A switch."), **flags})
    assert "members" in parse(spec, ["--members", "--list"])
    with pytest.raises(UsageError) as caught:
        parse(spec, ["--verbose", "--state"])
    assert caught.value.is_parse_error
    assert str(caught.value) == (
        "Option(s) [state, verbose] are unavailable given other options on the command line"
    )
