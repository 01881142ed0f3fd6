"""Workloads in TOML: the plan, and the command."""

from dataclasses import fields
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.client.errors import NotReachable
from ottla.tools import main
from ottla.tools.workloads.plan import (
    ACTIONS,
    ConsumePlan,
    FaultPlan,
    ProducePlan,
    TopicPlan,
    WorkloadPlan,
    parse_plan,
)
from ottla.tools.workloads.running import run_plan
from ottla_scripts import entry

WORKLOAD = """
name = "kill the leader"
duration = "60s"

[cluster]
brokers = 2
options = {"min.insync.replicas" = "1"}

[topics.orders]
replication_factor = 2

[[produce]]
topic = "orders"
records = 300
rate = 600
keys = 5
settings = {acks = "all"}

[[consume]]
topic = "orders"

[[fault]]
at = "100ms"
action = "ACTION"
broker = "leader:orders:0"
for = "200ms"
"""


def test_plan_has_every_key() -> None:
    """Durations are seconds, and faults are in the order of their times."""
    plan = parse_plan(
        WORKLOAD.replace("ACTION", "kill")
        + '[[fault]]\nat = "50ms"\naction = "slow_disk"\nbroker = 1\nfor = "1m"\ndelay = "10ms"\n'
    )
    assert (plan.name, plan.duration, plan.brokers) == ("kill the leader", 60.0, 2)
    assert plan.faults[0] == FaultPlan(at=0.05, action="slow_disk", broker="1", lasts=60.0, amount=0.01)  # fmt: skip
    assert plan.produce[0].settings == {"acks": "all"}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('topic = "orders"\nrecords', "records", "[[produce]]: topic is missing"),
        ("records = 300", "records = 0", "[[produce]]: records must be an integer of at least 1"),
        ("rate = 600", "rat = 600", "[[produce]]: rat is not a key; known keys: "),
        ('at = "100ms"', 'at = "soon"', "[[fault]]: at must be a duration such as 500ms"),
        ("ACTION", "nuke", "[[fault]]: action 'nuke' is not one of kill"),
        ("leader:orders:0", "someone", "[[fault]]: broker 'someone' must be a number"),
        ('"leader:orders:0"', "7", "[[fault]] names broker 7, but there are 2"),
        (
            '[[consume]]\ntopic = "orders"',
            '[[consume]]\ntopic = "x"',
            "which no [[produce]] writes",
        ),
        ("[cluster]", 'bootstrap = "a:1"\n[cluster]', "remove bootstrap"),
        ("[[consume]]", "[consume]", "write [[consume]] instead of [consume]"),
        ("brokers = 2", "brokers =", "the workload: this is not TOML"),
        ("brokers = 2", f"brokers = {'9' * 5000}", "this is not TOML: a number is too large"),
        ("brokers = 2", f"brokers = {'9' * 50}", "brokers must be an integer of at least 1 and at"),
        ("brokers = 2", f"x = {'[' * 50_000}", "its tables are nested too deeply"),
        ('at = "100ms"', f'at = "{"9" * 500}s"', "[[fault]]: at must be a duration such as 500ms"),
        ("leader:orders:0", f"leader:orders:{'9' * 5000}", "must be a number"),
        (
            "replication_factor = 2",
            "partitions = 0",
            "the workload: [topics.orders]: partitions must be",
        ),
        ("leader:orders:0", "leader:orders:1", "names a partition that neither [topics] nor"),
        ("leader:orders:0", "leader:others", "names a partition that neither [topics] nor"),
        (
            'topic = "orders"\nrecords',
            'topic = ""\nrecords',
            "[[produce]]: topic must not be empty",
        ),
    ],
)
def test_wrong_plan_is_explained(before: str, after: str, sentence: str) -> None:
    """The sentence names the table and the key."""
    assert before in WORKLOAD
    text = WORKLOAD.replace(before, after).replace("ACTION", "kill")
    with pytest.raises(ConfigError) as caught:
        parse_plan(text)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run"], ""),
        (["agent", "-n", "node0"], "trogdor agent is not available"),
        (["exec", "-s", "spec.json"], "'trogdor example' prints a file"),
        (["check", "a", "b"], ""),
        (["rum", "a"], "Unknown action 'rum'.  Type 'trogdor help' for help."),
    ],
)
def test_other_words_are_a_usage_error(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage is on standard error, behind the reason."""
    assert entry.run("trogdor", words) == 1
    errors = capsys.readouterr().err
    assert errors.endswith("USAGE: trogdor run|check FILE.toml [--output json]\n")
    assert sentence in errors


@pytest.mark.parametrize("words", [[], ["help"], ["--help"]])
def test_help_lists_the_actions(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No action is a request for help, as with Apache Kafka's script."""
    assert entry.run("trogdor", words) == 0
    printed = capsys.readouterr()
    assert "check: Check the file." in printed.out
    assert printed.err == ""


def test_example_has_every_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that the script and the command print is a workload without problems."""
    assert entry.run("trogdor", ["example"]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "kill-the-leader.toml"
    path.write_text(text)
    assert entry.run("trogdor", ["check", str(path)]) == 0
    capsys.readouterr()
    assert main.run(["perf", "workload", "--example"]) == 0
    assert capsys.readouterr().out == text
    plans = (WorkloadPlan, TopicPlan, ProducePlan, ConsumePlan)
    keys = {row.name for plan in plans for row in fields(plan)} - {"faults"} | {
        "for",
        "delay",
        "at",
    }
    assert [key for key in keys if key not in text] == []
    assert [action for action in ACTIONS if action not in text] == []


def test_check_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without problems has exit code 0."""
    file = tmp_path / "workload.toml"
    file.write_text(WORKLOAD.replace("ACTION", "kill"))
    assert entry.run("trogdor", ["check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: no problems found.\n"


def _plan(text: str) -> WorkloadPlan:
    return parse_plan(f'duration = "60s"\n{text}')


_SHORT = '[[produce]]\ntopic = "orders"\nrecords = 20\n'


def test_address_without_broker_is_reported_at_once() -> None:
    """The clients of the workload would retry until their timeouts."""
    with pytest.raises(NotReachable):
        run_plan(_plan('bootstrap = "127.0.0.1:1"\n' + _SHORT), print)
