"""`--bootstrap-controller` against a cluster without KRaft controllers."""

import pytest

from ottla.base.loading import load_module
from ottla.testing import Cluster
from ottla_scripts import entry
from ottla_scripts.table import SCRIPTS

pytestmark = pytest.mark.slow

WORDS = {
    "kafka-acls": ["--list"],
    "kafka-cluster": ["cluster-id"],
    "kafka-configs": ["--describe", "--entity-type", "brokers"],
    "kafka-features": ["describe"],
    "kafka-metadata-quorum": ["describe", "--status"],
    "kafka-reassign-partitions": ["--list"],
}


def _has_option(name: str) -> bool:
    spec = getattr(load_module(SCRIPTS[name].module), "SPEC", None)
    return spec is not None and "bootstrap-controller" in spec.flags


def test_every_script_with_the_option_is_tested() -> None:
    """A script that gets the option needs a row in WORDS."""
    assert {name for name in SCRIPTS if _has_option(name)} == WORDS.keys()


@pytest.mark.parametrize("name", WORDS)
def test_broker_in_place_of_a_controller_is_a_sentence(
    name: str, ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the option that works, and the exit code is 1."""
    address = ["--bootstrap-controller", ottla_cluster.bootstrap]
    # Only the subcommands of kafka-cluster have the option themselves.
    is_first = name in ("kafka-features", "kafka-metadata-quorum")
    line = [*address, *WORDS[name]] if is_first else [*WORDS[name], *address]
    assert entry.run(name, line) == 1
    printed = capsys.readouterr()
    assert "Use --bootstrap-server" in printed.out + printed.err
    assert "Traceback" not in printed.err
