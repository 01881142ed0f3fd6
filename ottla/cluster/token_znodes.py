"""The znodes of delegation tokens: the part of the catalogue (`znodes`) that few clusters have."""

from ottla.cluster.jvm_order import scala_immutable_map_order
from ottla.cluster.znodes import (
    ConfigNode,
    DelegationTokensNode,
    UnreadableNode,
    decode_json,
    encode_json,
)
from ottla.security.principal import Principal
from ottla.security.tokens import Token

_VERSIONS = range(1, 4)
_FIRST_WITH_REQUESTER = 3


class TokenNode:
    """A token without its HMAC, which each broker computes from the secret key."""

    @staticmethod
    def path(token_id: str) -> str:
        """Return the path of one token."""
        return f"{DelegationTokensNode.PATH}/{token_id}"

    @staticmethod
    def encode(token: Token) -> bytes:
        """Return the content, version 3."""
        value = {
            "version": _VERSIONS[-1],
            "owner": _sanitized(token.owner),
            "tokenRequester": _sanitized(token.requester),
            "renewers": [_sanitized(renewer) for renewer in token.renewers],
            "issueTimestamp": token.issue_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expiry_ms,
            "tokenId": token.token_id,
        }
        return encode_json({key: value[key] for key in scala_immutable_map_order(value)})

    @staticmethod
    def decode(path: str, data: bytes) -> Token:
        """Return the token. Until version 3 the owner is the requester (KIP-373)."""
        value = decode_json(path, data)
        try:
            version = int(value["version"])
            if version not in _VERSIONS:
                raise UnreadableNode(path)
            owner = _principal(value["owner"])
            requester = owner
            if version >= _FIRST_WITH_REQUESTER:
                requester = _principal(value["tokenRequester"])
            return Token(
                str(value["tokenId"]),
                owner,
                requester,
                tuple(_principal(text) for text in value["renewers"]),
                int(value["issueTimestamp"]),
                int(value["maxTimestamp"]),
                int(value["expiryTimestamp"]),
            )
        except (TypeError, ValueError) as error:
            raise UnreadableNode(path) from error


class TokenChangeNode:
    """Sequential: notifies every broker that a token was created, changed or deleted."""

    PARENT = f"{DelegationTokensNode.ROOT}/token_changes"
    PREFIX = f"{PARENT}/token_change_"

    @staticmethod
    def encode(token_id: str) -> bytes:
        """Return the content: the id of the token."""
        return token_id.encode()

    @staticmethod
    def decode(data: bytes) -> str:
        """Return the id of the token."""
        return data.decode(errors="replace")


def _sanitized(principal: Principal) -> str:
    return ConfigNode.sanitize(principal.text())


def _principal(text: object) -> Principal:
    return Principal.parse(ConfigNode.desanitize(str(text)) or "")
