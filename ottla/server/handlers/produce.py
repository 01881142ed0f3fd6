"""Produce (key 0), versions 3-13: append record batches.

v3: record batches, transactional id. v5: log start offset. v7: zstd. v8: record errors (KIP-467).
v9: flexible. v10: current leader and endpoints (KIP-951). v11: TRANSACTION_ABORTABLE (KIP-890).
v12: partitions are made part of the transaction (KIP-890, transaction.version 2). v13: topic ids
(KIP-516). Version 0 is advertised and refused (KAFKA-18659).

Not done: nothing.
"""

from ottla.base.errors import ApiError
from ottla.coordinators.replies import Reply
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.produce.admission import Refusals, Waiting
from ottla.server.produce.appending import Unwritten, append_all, refuse_all
from ottla.server.produce.request import keep_records
from ottla.server.produce.response import respond
from ottla.server.produce.shortcut import ProduceShortcut
from ottla.server.produce.transactional_batches import write_of
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

API = ApiKey.PRODUCE
MIN_VERSION = 3
MAX_VERSION = 13
# Version 0 is advertised and refused: old librdkafka needs it (KAFKA-18659).
PROPERTIES = ApiProperties(advertised_min=0, is_read_ahead=True, shortcut=ProduceShortcut)


def handle(context: RequestContext, request: ProduceRequest) -> Reply[ProduceResponse | None]:
    """Append the batches; respond with acks=all when they are committed, with acks=0 never."""
    try:
        write = write_of(context, request)
    except ApiError as error:
        return respond(context, request.acks, refuse_all(context, request, error))
    if write is None:
        return respond(context, request.acks, append_all(context, request, {}))
    verdict = context.broker.admission.ask(write)
    if isinstance(verdict, Waiting):
        return _when_admitted(context, request, verdict)
    return respond(context, request.acks, append_all(context, request, verdict))


def _when_admitted(
    context: RequestContext, request: ProduceRequest, waiting: Waiting
) -> Reply[ProduceResponse | None]:
    """Append and respond once the coordinator of the transaction has decided."""
    # The frame is released before the records are written.
    held_bytes = keep_records(request)
    unwritten: Unwritten = []

    def act(refusals: Refusals) -> Reply[ProduceResponse | None]:
        appended = append_all(context, request, refusals, unwritten)
        return respond(context, request.acks, appended)

    response = waiting.then(act, unwritten)
    context.connection.budget.hold_until(held_bytes, response)
    return response
