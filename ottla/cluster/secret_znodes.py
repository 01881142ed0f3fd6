"""The nodes with secrets of the cluster: of brokers (`broker_secret`), and of logins with SCRAM."""

from typing import Any, NamedTuple

from ottla.cluster.znodes import UnreadableNode, decode_json, encode_json


class SecretContent(NamedTuple):
    """The key and its generation, and the former one, which was replaced at a time in milliseconds
    since 1970; without one, the key is the first.
    """

    key: bytes
    generation: int = 1
    former: tuple[int, bytes] | None = None
    replaced_ms: int = 0


class BrokerSecretNode:
    """The secret that brokers share; Apache Kafka has no such node."""

    PATH = "/ottla/broker_secret"

    @staticmethod
    def encode(content: SecretContent) -> bytes:
        """Return the content, version 1."""
        fields: dict[str, Any] = {"version": 1, "secret": content.key.hex()}
        if content.former is not None:
            generation, key = content.former
            fields |= {
                "generation": content.generation,
                "former_secret": key.hex(),
                "former_generation": generation,
                "replaced_ms": content.replaced_ms,
            }
        return encode_json(fields)

    @staticmethod
    def decode(data: bytes) -> SecretContent:
        """Return the secret."""
        fields = decode_json(BrokerSecretNode.PATH, data)
        try:
            key = bytes.fromhex(str(fields["secret"]))
            if "former_secret" not in fields:
                return SecretContent(key)
            former = int(fields["former_generation"]), bytes.fromhex(str(fields["former_secret"]))
            generation, replaced_ms = int(fields["generation"]), int(fields["replaced_ms"])
            return SecretContent(key, generation, former, replaced_ms)
        except (ValueError, KeyError) as error:
            raise UnreadableNode(BrokerSecretNode.PATH) from error


class LoginSecretNode:
    """The secret from which brokers derive the responses to unknown users; Kafka has no such node."""

    PATH = f"{BrokerSecretNode.PATH.rpartition('/')[0]}/login_secret"

    @staticmethod
    def encode(secret: bytes) -> bytes:
        """Return the content, version 1."""
        return encode_json({"version": 1, "secret": secret.hex()})

    @staticmethod
    def decode(data: bytes) -> bytes:
        """Return the secret."""
        text = str(decode_json(LoginSecretNode.PATH, data)["secret"])
        try:
            return bytes.fromhex(text)
        except ValueError as error:
            raise UnreadableNode(LoginSecretNode.PATH) from error
