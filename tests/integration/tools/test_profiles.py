"""Commands use the addresses and files of profiles to reach a cluster."""

from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.tools import main
from tests.unit.tools.test_profiles import write_config


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the configuration folder of this test; no variable chooses a cluster."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    monkeypatch.delenv("OTTLA_COMMAND_CONFIG", raising=False)
    return tmp_path / "config"


def ottla(*command_line: str) -> int:
    """Run a command."""
    return main.run(command_line)


def test_commands_use_the_current_profile(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first profile is the current one; no other option is needed."""
    assert ottla("profile", "create", "dev", "--bootstrap", ottla_cluster.bootstrap) == 0
    assert ottla("topic", "create", "orders") == 0
    capsys.readouterr()
    assert ottla("topic", "list") == 0
    assert "orders" in capsys.readouterr().out


def test_a_file_of_options_is_used_with_the_address_of_its_profile_only(
    ottla_cluster: Cluster, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A password must not be sent to another cluster that --bootstrap names."""
    config = write_config(folder, "client.id=ann\n")
    address = ("--bootstrap", ottla_cluster.bootstrap)
    assert ottla("profile", "create", "dev", *address, "--command-config", config) == 0
    write_config(folder, "security.protocol=SECRET\n")
    capsys.readouterr()
    assert ottla("topic", "list") == 1
    assert "security.protocol=SECRET" in capsys.readouterr().err
    assert ottla("topic", "list", *address) == 0
    assert ottla("topic", "list", *address, "--command-config", config) == 1
    ottla("profile", "create", "dev", *address, "--force")
    assert ottla("topic", "list") == 0


def test_variables_choose_the_file_of_options(
    ottla_cluster: Cluster,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """OTTLA_COMMAND_CONFIG names one; OTTLA_BOOTSTRAP is not the address of the profile."""
    config = write_config(folder, "")
    ottla("profile", "create", "dev", "--bootstrap", "a:1", "--command-config", config)
    write_config(folder, "security.protocol=SECRET\n")
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_cluster.bootstrap)
    assert ottla("topic", "list") == 0
    monkeypatch.setenv("OTTLA_COMMAND_CONFIG", config)
    capsys.readouterr()
    assert ottla("topic", "list") == 1
    assert "security.protocol=SECRET" in capsys.readouterr().err
