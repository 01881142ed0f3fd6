"""The folders of a cluster on one machine, below the folder that `ottla up --data` names.

    broker1/ broker2/ …    the log directory of each broker
    coordination/          the cluster's metadata
    broker1.properties …   the settings of each broker, with --processes

A single broker uses the folder itself as its log directory. The two cannot be mixed.
"""

from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.tools.output import note

_COORDINATION = "coordination"
_OF_ONE_BROKER = "meta.properties"


def coordination(data: str) -> str:
    """Return the folder for the metadata."""
    return f"{data}/{_COORDINATION}"


def log_directory(data: str, number: int) -> str:
    """Return the log directory of a broker."""
    # Not broker-1, which would be a partition of a topic if the folder were a log directory.
    return f"{data}/broker{number}"


def properties(data: str, number: int) -> Path:
    """Return the file with the settings of a broker."""
    return Path(f"{data}/broker{number}.properties")


def refuse_cluster(data: str) -> None:
    """Raise ConfigError if the folder holds a cluster of several brokers."""
    folder = Path(data)
    if (folder / _COORDINATION).is_dir() and not (folder / _OF_ONE_BROKER).exists():
        count = len(list(folder.glob("broker[0-9]*/")))
        raise ConfigError(
            f"{data} holds a cluster of {count} brokers: add --brokers {count}, or name another "
            "folder with --data"
        )


def check_cluster(data: str, count: int) -> None:
    """Raise ConfigError if the folder is one broker's; report brokers that are not started."""
    if (Path(data) / _OF_ONE_BROKER).exists():
        raise ConfigError(
            f"{data} holds the data of a single broker: name another folder with --data, or omit "
            "--brokers and --processes"
        )
    missing = [
        path.name
        for path in Path(data).glob("broker[0-9]*/")
        if int(path.name.removeprefix("broker")) > count
    ]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        note(f"{data} also has data of {', '.join(sorted(missing))}, which {verb} not started.")
