"""The properties of an API that its handler declares and the dispatcher needs.

A handler module without such properties declares nothing; others declare
`PROPERTIES = ApiProperties(...)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.server.shortcuts import RouteParts, Shortcut


@dataclass(frozen=True, kw_only=True)
class ApiProperties:
    """The properties of one API in all versions."""

    # Advertised to clients instead of MIN_VERSION.
    advertised_min: int | None = None
    # Later requests may be handled before its deferred response is sent.
    is_read_ahead: bool = False
    # The deferred response can be cancelled if the connection is lost.
    ends_with_connection: bool = False
    # A plain response depends only on the request, the image and the address of the broker.
    is_cached: bool = False
    # Advertised only while there are subscriptions to client metrics: clients that know the API use
    # it and log.
    is_for_client_metrics: bool = False
    # Sent by brokers only: client quotas do not apply.
    is_among_brokers: bool = False
    # Changes the cluster: its requests are in the table of the audit log.
    is_administrative: bool = False
    # The response comes from the metadata: waits until the controller has informed this broker.
    needs_metadata: bool = False
    # Refused with CLUSTER_AUTHORIZATION_FAILED unless the sender has proven to be a broker, from
    # this version on (decision 0029).
    needs_proof: bool = False
    proof_since: int = 0
    # Sent by administrators, too: if an authorizer checks their right, they need no proof.
    is_for_administrators: bool = False
    # Returns the response to a refused request, if that has no error of its own.
    refuse: Callable[[Any], Any] | None = None
    # Called with a large request and its context before the request is divided: may change it, or
    # return the whole response.
    prepare: Callable[[Any, Any], Any] | None = None
    # Builds the response to requests that differ from earlier ones only in records or offsets,
    # without the handler. Constructed for each version with the broker, the version and parts of
    # the route.
    shortcut: Callable[[Any, int, RouteParts], Shortcut] | None = None
