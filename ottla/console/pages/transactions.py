"""Transactions: open ones, hanging ones, and their abort."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.model.transactions import (
    TransactionRow,
    abort_hanging,
    abort_open,
    describe_transaction,
    find_hanging,
    list_transactions,
)
from ottla.console.page import Action, Done, Page, View
from ottla.console.tables import arrange
from ottla.operations.changes import require_confirmation
from ottla.operations.numbers import INT_MAX

_SORTS = {
    "id": lambda row: row.transactional_id,
    "state": lambda row: row.state,
    "duration": lambda row: row.duration_s,
}
_HANGING_AFTER_S = 900


def show(view: View) -> Mapping[str, Any]:
    """Return transactional ids; and hanging transactions if the query asks for them."""
    only_open = view.query.is_checked("open")
    rows = list_transactions(view.cluster, only_open=only_open)
    after = view.query.integer("after", _HANGING_AFTER_S, least=0)
    hanging = None
    if view.query.is_checked("hanging"):
        hanging = find_hanging(view.cluster, max_timeout_s=float(after))
    table = arrange(rows, view.query, _SORTS, _text)
    return {**table, "only_open": only_open, "hanging": hanging, "after": after}


def show_one(view: View) -> Mapping[str, Any]:
    """Return one transaction."""
    return {"row": describe_transaction(view.cluster, view.query.get("id", ""))}


def abort(view: View) -> Done:
    """Fence a producer and abort its transaction."""
    name = view.form.required("id")
    confirmation = view.form.text("confirmation")
    require_confirmation(name, confirmation, verb="abort the transaction", kind="its id")
    change = abort_open(view.cluster, name)
    return Done(view.say("The transaction of {name} is aborted.", name=name), change=change)


def abort_hung(view: View) -> Done:
    """Write an abort marker for a hanging transaction."""
    topic, partition = (
        view.form.required("topic"),
        view.form.integer("partition", least=0, most=INT_MAX),
    )
    producer, start = view.form.integer("producer"), view.form.integer("start", least=0)
    after = view.query.integer("after", _HANGING_AFTER_S, least=0)
    for row in find_hanging(view.cluster, topic=topic, max_timeout_s=float(after)):
        if (row.partition, row.producer_id, row.start_offset) == (partition, producer, start):
            change = abort_hanging(view.cluster, row)
            return Done(view.say("The hanging transaction is aborted."), change=change)
    raise ConfigError("this transaction no longer hangs: load the page again")


def _text(row: TransactionRow) -> str:
    return row.transactional_id


PAGES = (
    Page(
        "/transactions",
        "transactions.html",
        show,
        "transactions",
        actions={
            "abort-hanging": Action(abort_hung, "transaction.abort-hanging", "topic", Role.ADMIN)
        },
        refresh_s=5,
    ),
    Page(
        "/transaction",
        "transaction.html",
        show_one,
        "transactions",
        actions={"abort": Action(abort, "transaction.abort", "id", Role.ADMIN)},
        refresh_s=5,
    ),
)
