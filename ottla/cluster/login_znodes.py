"""The znodes of logins: the part of the catalogue (`znodes`) that only brokers with SCRAM have."""

from ottla.cluster.znodes import BrokerSecretNode, UnreadableNode, decode_json, encode_json


class LoginSecretNode:
    """The secret from which brokers derive the answers to unknown users; Kafka has no such node."""

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
