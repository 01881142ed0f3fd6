"""A record is one line of JSON, whatever names clients choose."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ottla.server.audit.record import (
    SUCCESS,
    TEXT_MAX,
    AuditEvent,
    AuditRecord,
    Origin,
    Resource,
)


def record(name: str, **details: str) -> AuditRecord:
    """Return a record all of whose texts a client has chosen."""
    return AuditRecord(
        time_ms=1_767_225_600_123,
        broker_id=1,
        event=AuditEvent.CHANGE,
        origin=Origin(f"User:{name}", "10.0.0.1", "SASL_SSL", name),
        api="CREATE_TOPICS",
        operation="CREATE",
        resource=Resource("TOPIC", name, 0),
        rule=name,
        result=SUCCESS,
        details=details,
    )


@given(st.text(max_size=200))
def test_line_has_printable_ascii_only_and_can_be_read_back(name: str) -> None:
    """No line break, quote, control or bidirectional character forges a line or a field."""
    line = record(name, x=name).line()
    assert all(" " <= letter <= "~" for letter in line)
    fields = json.loads(line)
    assert fields["principal"] == f"User:{name}"
    assert fields["details"]["x"] == name
    assert (fields["partition"], fields["result"]) == (0, "success")
    assert fields["time"] == "2026-01-01T00:00:00.123Z"


def test_long_texts_and_many_details_are_cut() -> None:
    """A client id of 32 KiB does not make a line of that size."""
    line = record("x" * 32_000, **{f"option{number}": "v" * 9_000 for number in range(500)}).line()
    assert len(line) < 60 * (TEXT_MAX + 50)
    fields = json.loads(line)
    assert len(fields["resource"]) == TEXT_MAX + 1
    assert fields["details"]["…"] == 450
