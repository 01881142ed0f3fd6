"""The audit log: every change through the console."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.console.accounts.audit import MAX_ROWS
from ottla.console.accounts.roles import Role
from ottla.console.formats import moment
from ottla.console.page import Download, Page, Source, View
from ottla.console.spreadsheets import csv_line

_ROWS = 200


def show(view: View) -> Mapping[str, Any]:
    """Return the newest rows that contain a text; `before` continues a list."""
    before = view.query.integer("before", 0) or None
    rows = view.console.audit.entries(text=view.query.text("q"), limit=_ROWS, before_ms=before)
    following = rows[-1].at_ms if len(rows) == _ROWS else None
    return {"entries": rows, "q": view.query.text("q"), "following": following}


def download(view: View) -> Download:
    """Return the whole log as CSV."""

    def lines() -> Iterator[bytes]:
        yield b"time,user,address,cluster,action,target,details,result\n"
        for row in view.console.audit.entries(limit=MAX_ROWS):
            details = json.dumps(row.details, ensure_ascii=False)
            yield csv_line([moment(row.at_ms), *row[1:6], details, row.result])

    return Download("audit.csv", "text/csv; charset=utf-8", lines())


PAGES = (
    Page("/audit", "audit.html", show, "audit", role=Role.ADMIN, is_global=True, refresh_s=10),
)
SOURCES = (Source("/audit.csv", download, Role.ADMIN, is_global=True),)
