"""An audit log in memory."""

from ottla.base.clock import Clock, RealClock
from ottla.base.tasks import Tasks
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server.audit.log import AuditLog
from ottla.server.audit.record import AuditRecord


class Records(list[AuditRecord]):
    """A destination that keeps the records."""

    lost_count = 0

    async def open(self) -> None:
        pass

    def write(self, record: AuditRecord) -> None:
        self.append(record)

    async def close(self) -> None:
        pass


def audit_log(
    records: Records | None = None,
    clock: Clock | None = None,
    tasks: Tasks | None = None,
    **settings: str,
) -> AuditLog:
    """Return the audit log of broker 1, with settings whose dots are written as underscores."""
    options = BROKER_OPTIONS.parse(
        {name.replace("_", "."): text for name, text in settings.items()}
    )
    written = Records() if records is None else records
    return AuditLog(options, 1, written, clock or RealClock(), tasks or Tasks())
