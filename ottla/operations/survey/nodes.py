"""The same request to many brokers in parallel; brokers that are down are left out."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.client.errors import TimedOut
from ottla.operations.survey.connections import ClusterConnection, ClusterUnavailable

T = TypeVar("T")


class _Down:
    """The result for a broker that did not respond."""


def ask_nodes(
    connection: ClusterConnection, nodes: Iterable[int], ask: Callable[[Brokers, int], T]
) -> dict[int, T]:
    """Return the results by node id, without brokers that do not respond.

    `ask` sends its request once. A broker that fails is skipped for some seconds by later calls.
    """
    live = [
        node for node in sorted(set(nodes)) if node >= 0 and not connection.silence.is_silent(node)
    ]
    calls = {node: partial(_ask_node, connection, node, ask) for node in live}
    results = connection.in_parallel(calls)
    return {node: value for node, value in results.items() if not isinstance(value, _Down)}


def _ask_node(
    connection: ClusterConnection, node: int, ask: Callable[[Brokers, int], T]
) -> T | _Down:
    for is_last in (False, True):
        try:
            with connection.brokers() as brokers:
                value = ask(brokers, node)
            connection.silence.on_response(node)
            return value
        except ApiError as error:
            if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                raise
        except ClusterUnavailable as error:
            # A connection from the pool may have broken since its last use: try a new one.
            if isinstance(error.__cause__, TimedOut):
                connection.silence.on_timeout(node)
                return _Down()
            if is_last:
                break
    connection.silence.on_refusal(node)
    return _Down()
