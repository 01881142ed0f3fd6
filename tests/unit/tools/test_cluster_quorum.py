"""The lag of voters and the files of controllers, for the quorum of a KRaft cluster."""

from pathlib import Path

import pytest

from ottla.base.errors import ApiError, ConfigError
from ottla.client.admin.apache.quorum import Quorum, QuorumReplica, RaftEndpoint
from ottla.tools.cluster.controller_files import parse_directory_id, read_controller

_TEXT = "JEXY6aqzQY-32P5TStzaFg"
_ID = parse_directory_id(_TEXT)
QUORUM = Quorum(
    leader_id=2,
    leader_epoch=6,
    high_watermark=7,
    voters=(QuorumReplica(1, _ID, 5, 400, 300), QuorumReplica(2, bytes(16), 9, 500, 500)),
    observers=(QuorumReplica(3, _ID, 8, -1, -1),),
    endpoints={2: (RaftEndpoint("CONTROLLER", "::1", 9093),)},
)


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """The file of a controller whose directory has been formatted."""
    (tmp_path / "meta.properties").write_text(
        f"version=1\nnode.id=4\ncluster.id=c\ndirectory.id={_TEXT}\n"
    )
    path = tmp_path / "controller.properties"
    path.write_text(
        f"node.id=4\nprocess.roles=controller\nlog.dirs={tmp_path}\n"
        "listeners=CONTROLLER://h:9093\ncontroller.listener.names=CONTROLLER\n"
    )
    return path


def test_lag_is_that_of_the_last_voter() -> None:
    """Observers are not counted; unknown times are -1."""
    assert QUORUM.max_follower_lag() == (4, 200)
    assert [(row.node_id, status) for row, status in QUORUM.replicas()] == [
        (2, "Leader"), (1, "Follower"), (3, "Observer"),
    ]  # fmt: skip
    leader, unknown = QUORUM.voters[1], QuorumReplica(1, _ID, 5, -1, -1)
    assert Quorum(2, 6, 7, (leader, unknown), (), {}).max_follower_lag() == (4, -1)
    assert Quorum(2, 6, 7, (leader,), (), {}).max_follower_lag() == (0, 0)
    with pytest.raises(ApiError, match="has no leader"):
        Quorum(-1, 6, 7, (leader,), (), {}).max_follower_lag()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"node.id": "x"}, 'For input string: "x"'),
        ({"process.roles": "broker"}, "did not contain 'controller'"),
        ({"listeners": "nonsense"}, "Unable to parse nonsense to a broker endpoint"),
        ({"controller.listener.names": "B"}, "controller listener name: B"),
        ({"metadata.log.dir": "/nonexistent"}, "Unable to read meta.properties from /nonexistent"),
    ],
)
def test_file_that_is_not_a_controllers_is_refused(
    settings: dict[str, str], reason: str, config: Path
) -> None:
    """The sentences are Apache Kafka's."""
    properties = dict(line.split("=", 1) for line in config.read_text().splitlines())
    assert read_controller(properties).node_id == 4
    with pytest.raises(ConfigError, match=reason):
        read_controller({**properties, **settings})


def test_directory_id_with_padding_is_read() -> None:
    """Java reads the text with and without padding."""
    assert parse_directory_id(f"{_TEXT}==") == _ID
