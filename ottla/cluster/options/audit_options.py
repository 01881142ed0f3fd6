"""The broker options of the audit log: what is written, and to which file."""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import Rows

EVENTS = ("changes", "denials", "failed-logins")

_row = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _row(
        "audit.log.events",
        OptionType.LIST,
        list(EVENTS),
        "Ottla's own: the events of the audit log (docs/security.md): administrative changes, "
        "requests that the authorizer denies, and logins that fail. Empty: no audit log.",
        choices=EVENTS,
    ),
    _row(
        "audit.log.file",
        OptionType.STRING,
        None,
        "Ottla's own: the file of the audit log, with a JSON object in each line. Without it, the "
        "lines go to the logger ottla.audit, and so to the log of the broker.",
    ),
    _row(
        "audit.log.file.max.bytes",
        OptionType.LONG,
        100 * 1024**2,
        "Ottla's own: the size at which audit.log.file is renamed to FILE.1, and begun again.",
        minimum=4096,
    ),
    _row(
        "audit.log.file.backups",
        OptionType.INT,
        10,
        "Ottla's own: how many renamed files of the audit log are kept. The oldest one is removed.",
        minimum=1,
        maximum=1000,
    ),
)
