"""Requests of other brokers, which have proven their identity."""

from types import ModuleType
from typing import Any, cast

from ottla.security.broker_proof import ProofToPeer
from tests.handlers.logs import LogsBroker


def accept_peer(broker: LogsBroker, peer_id: int) -> None:
    """Have all further requests come from a broker that has proven its id."""
    proof = ProofToPeer({1: b""}, b"")
    proof.broker_id = peer_id
    context_of = broker.context

    def context(handler: ModuleType, version: int, listener: str = "PLAINTEXT") -> Any:
        result = context_of(handler, version, listener)
        result.connection.identity = proof
        return result

    cast(Any, broker).context = context
