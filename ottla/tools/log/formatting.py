"""The work of `ottla log format` and `ottla log info`.

Apart from the commands, which import no part of a broker before their arguments are valid.
"""

from ottla.base import uuids
from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.options import Snapshot
from ottla.base.rng import SystemRng
from ottla.client.config.properties import parse_properties
from ottla.cluster.options.option_tables import parse_broker_settings
from ottla.server.coordination.formatted_cluster import Format, format_directories
from ottla.storage.directories import formatting
from ottla.tools.broker.layout import refuse_cluster
from ottla.tools.broker.settings import UpOptions, broker_settings
from ottla.tools.output import Output, note
from ottla.tools.text_files import read_text

_COLUMNS = ("directory", "cluster_id", "node_id", "directory_id", "version")


def format_log(
    output: Output,
    config: str | None,
    data: str | None,
    cluster_id: str | None,
    ignores_formatted: bool,
) -> None:
    """Format the log directories of a broker, and print the id of its cluster."""
    settings = settings_of(config, data)
    rng = SystemRng()
    refuse_cluster(settings.strings("log.dirs")[0])
    chosen = uuids.uuid_text(uuids.random_uuid(rng)) if cluster_id is None else cluster_id
    result = format_directories(
        settings,
        Format(chosen, ignores_formatted=ignores_formatted),
        files=RealFileSystem(),
        clock=RealClock(),
        rng=rng,
    )
    for directory in result.unreadable:
        note(f"{directory} cannot be read, and was not formatted.")
    named = ", ".join(result.directories)
    sentence = f"Formatted {named} for the cluster {chosen}." if named else "Nothing to format."
    output.done(sentence, cluster_id=chosen, directories=result.directories)


def show(output: Output, config: str | None, data: str | None) -> int:
    """Print the owners of the log directories of a broker; return 1 if there is a problem."""
    files = RealFileSystem()
    settings = settings_of(config, data)
    directories = settings.strings("log.dirs")
    owners = formatting.read_owners(files, directories).by_directory
    rows = [{"directory": name, **owner._asdict()} for name, owner in owners.items()]
    output.rows(rows, _COLUMNS)
    report = formatting.examine(files, directories, is_kraft=bool(settings["process.roles"]))
    for problem in report.problems:
        note(problem)
    return 1 if report.problems else 0


def settings_of(config: str | None, data: str | None) -> Snapshot:
    """Return the options of the broker that `ottla up` would start with these."""
    file = {} if config is None else parse_properties(read_text(config), config)
    settings = broker_settings(UpOptions(data=data, options={}, file=file))
    return parse_broker_settings(settings).snapshot
