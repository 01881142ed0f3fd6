"""`ottla quota …` and the admin client's quotas."""

from typing import Any

import pytest

from ottla.client.admin.client import AdminClient
from ottla.testing import Cluster


def test_quotas_are_set_listed_and_removed(run: Any, ottla_cluster: Cluster) -> None:
    """The command and the admin client show the same quotas."""
    assert run("quota", "list").errors.startswith("No quotas.")
    done = run("quota", "set", "--client-id", "loader", "--set", "producer_byte_rate=1000")
    assert done.out == b"Changed the quotas of client-id=loader.\n"
    run("quota", "set", "--user", "<default>", "--set", "request_percentage=50")
    assert run("quota", "list", "--client-id", "loader", "--output", "json").json == [
        {"entity": {"client-id": "loader"}, "quota": "producer_byte_rate", "value": 1000.0}
    ]
    assert ["user=<default>", "request_percentage", "50.0"] in run("quota", "list").rows
    with AdminClient(bootstrap_servers=ottla_cluster.bootstrap) as admin:
        values = {tuple(row.entity.items()): row.values for row in admin.describe_client_quotas()}
        assert values[("client-id", "loader"),] == {"producer_byte_rate": 1000.0}
        admin.alter_client_quotas({"client-id": "loader"}, delete=["producer_byte_rate"])
        assert admin.describe_client_quotas({"client-id": "loader"}) == []
        (row,) = admin.describe_client_quotas(any_of=["user"], strict=True)
        assert row.entity == {"user": None}


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["--set", "producer_byte_rate=1"], "Name the entity"),
        (["--user", "u"], "Give --set NAME=NUMBER"),
        (["--user", "u", "--set", "producer_byte_rate=x"], "'x' is not a number"),
        (["--user", "u", "--set", "producer_byte_rate"], "not of the form name=value"),
        (["--user", "u", "--set", "no_such_rate=1"], "no_such_rate"),
        (["--user", "u", "--delete", "producer_byte_rat"], "the quotas are producer_byte_rate"),
        (["--ip", "1.2.3.4", "--user", "u", "--set", "a=1"], "cannot be combined"),
    ],
)
def test_wrong_quota_changes_nothing(run: Any, command_line: list[str], sentence: str) -> None:
    """The sentence names the option or the quota."""
    done = run("quota", "set", *command_line)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert run("quota", "list", "--output", "json").json == []
