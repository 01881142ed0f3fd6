"""The log of commands that run brokers."""

import logging

import pytest

from ottla.base.logs import AUDIT
from ottla.tools.broker.serving import configure_logs
from ottla.tools.output import Output


@pytest.mark.parametrize(
    ("log_levels", "is_audited", "is_written"),
    [
        ((), True, True),
        (("error",), True, True),
        (("ottla.audit=error",), True, False),
        ((), False, False),
        (("info",), False, True),
    ],
)
def test_audit_log_of_a_broker_is_written_by_default(
    log_levels: tuple[str, ...],
    is_audited: bool,
    is_written: bool,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It has a level of its own, which the operator may set; `ottla up` shows it with `info`."""
    configure_logs(Output("json"), log_levels, "text", is_audited=is_audited)
    logging.getLogger(AUDIT).info("%s", '{"event": "change"}')
    lines = capfd.readouterr().err
    assert lines.endswith('INFO ottla.audit {"event": "change"}\n') is is_written
