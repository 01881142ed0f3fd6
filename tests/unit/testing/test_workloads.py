"""Workloads in TOML: the plan, and a run with a fault."""

import json
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.testing.workloads.plan import FaultPlan, parse_plan
from ottla.tools.scripts import entry

_WORKLOAD = """
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
        _WORKLOAD.replace("ACTION", "kill")
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
        ("brokers = 2", "brokers =", "the workload is not TOML"),
    ],
)
def test_wrong_plan_is_explained(before: str, after: str, sentence: str) -> None:
    """The sentence names the table and the key."""
    assert before in _WORKLOAD
    text = _WORKLOAD.replace(before, after).replace("ACTION", "kill")
    with pytest.raises(ConfigError) as caught:
        parse_plan(text)
    assert sentence in str(caught.value)


def test_no_acknowledged_record_is_lost_when_the_leader_pauses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script runs brokers, clients and the fault, and checks the records."""
    file = tmp_path / "workload.toml"
    file.write_text(_WORKLOAD.replace("ACTION", "pause"))
    assert entry.run("trogdor", ["run", str(file), "--output", "json"]) == 0
    printed = capsys.readouterr()
    facts = json.loads(printed.out)
    assert facts["produce"][0]["acknowledged"] == 300
    assert facts["consume"][0]["missing"] == 0
    assert facts["consume"][0]["read"] >= 300
    assert [line.rsplit(" ", 1)[0] for line in facts["faults"]] == ["pause broker", "resume broker"]


@pytest.mark.parametrize("words", [[], ["run"], ["agent", "-n", "node0"], ["check", "a", "b"]])
def test_other_words_are_a_usage_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage is on standard error."""
    assert entry.run("trogdor", words) == 1
    assert "USAGE: trogdor run|check FILE.toml" in capsys.readouterr().err


def test_check_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without problems has exit code 0."""
    file = tmp_path / "workload.toml"
    file.write_text(_WORKLOAD.replace("ACTION", "kill"))
    assert entry.run("trogdor", ["check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: no problems found.\n"
