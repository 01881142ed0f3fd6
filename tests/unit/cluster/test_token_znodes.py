"""The znodes of delegation tokens: the bytes of Apache Kafka 3.9."""

import json

import pytest

from ottla.cluster.token_znodes import TokenChangeNode, TokenNode
from ottla.cluster.znodes import UnreadableNode
from ottla.security.principal import Principal
from ottla.security.tokens import Token

PATH = TokenNode.path("an-id")
TOKEN = Token(
    "an-id",
    Principal("User", "CN=ann, O=é"),
    Principal("User", "eve"),
    (Principal("User", "ben"), Principal("User", "cid*")),
    1,
    3,
    2,
)


def test_token_is_read_as_it_is_written() -> None:
    """Principals are escaped as in Kafka's paths."""
    assert PATH == "/delegation_token/tokens/an-id"
    value = json.loads(TokenNode.encode(TOKEN))
    assert value["owner"] == "User%3ACN%3Dann%2C%20O%3D%C3%A9"
    assert value["renewers"] == ["User%3Aben", "User%3Acid%2A"]
    assert TokenNode.decode(PATH, TokenNode.encode(TOKEN)) == TOKEN


@pytest.mark.parametrize("version", [1, 2])
def test_owner_of_an_older_token_is_its_requester(version: int) -> None:
    """KIP-373 added the requester in version 3."""
    value = json.loads(TokenNode.encode(TOKEN)) | {"version": version}
    del value["tokenRequester"]
    decoded = TokenNode.decode(PATH, json.dumps(value).encode())
    assert decoded == TOKEN._replace(requester=TOKEN.owner)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 4},
        {"owner": "ann"},
        {"renewers": 7},
        {"maxTimestamp": "soon"},
        {"tokenId": None},
    ],
)
def test_damaged_token_is_not_read(change: dict[str, object]) -> None:
    """Also one of a newer version."""
    value = json.loads(TokenNode.encode(TOKEN)) | change
    if change.get("tokenId", "") is None:
        del value["tokenId"]
    with pytest.raises(UnreadableNode):
        TokenNode.decode(PATH, json.dumps(value).encode())


def test_notification_has_the_id() -> None:
    """It is a text, not JSON."""
    assert TokenChangeNode.PREFIX == "/delegation_token/token_changes/token_change_"
    assert TokenChangeNode.decode(TokenChangeNode.encode("an-id")) == "an-id"
