"""The folders of a cluster on one machine, below the folder that `ottla up --data` names.

    broker1/ broker2/ …    the log directory of each broker
    coordination/          the cluster's metadata
    broker1.properties …   the settings of each broker, with --processes

A single broker uses the folder itself as its log directory. The two cannot be mixed.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from ottla.base.errors import ConfigError, OttlaError
from ottla.base.files import RealFileSystem
from ottla.base.loading import deferred
from ottla.storage.files.checkpoints import LOCK_FILE
from ottla.tools.output import note

# Only a failed start imports it.
_rmtree = deferred("shutil", "rmtree")
_COORDINATION = "coordination"
_OF_ONE_BROKER = "meta.properties"
_LOCKS = (LOCK_FILE, "cluster.lock")
# The files of brokers that have no topic yet.
_WITHOUT_TOPICS = re.compile(
    r"\.lock|\.kafka_cleanshutdown|meta\.properties|broker-registrations|[a-z-]+-offset-checkpoint"
    r"|cluster\.(lock|journal|snapshot|jaas).*|broker[0-9]+\.properties"
)


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


def numbered_file(path: str, number: int) -> str:
    """Return the path of a broker's own file, from one that was set for all brokers."""
    whole = Path(path)
    return str(whole.with_name(f"{whole.stem}-{number}{whole.suffix}"))


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


@contextlib.contextmanager
def removed_unless_started(folders: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Remove what brokers create in the folders if their start fails; yield a function to call when
    they have started.

    Only folders that are absent or empty before the start are cleaned up. Their files are kept if
    they contain a topic, or if another process holds a lock there.
    """
    new = [path for path in map(Path, folders) if not path.is_dir() or not any(path.iterdir())]
    absent = [parent for path in new for parent in (path, *path.parents) if not parent.exists()]
    is_started = False

    def on_started() -> None:
        nonlocal is_started
        is_started = True

    try:
        yield on_started
    except (OttlaError, OSError):
        if not is_started:
            # The error of the start is the one to report.
            for path in new:
                with contextlib.suppress(OSError):
                    _remove_content(path)
            for path in sorted(set(absent), key=lambda path: len(path.parts), reverse=True):
                with contextlib.suppress(OSError):
                    path.rmdir()
        raise


def _remove_content(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    if not all(_WITHOUT_TOPICS.fullmatch(path.name) for path in files):
        return
    with ExitStack() as locks:
        for path in files:
            if path.name in _LOCKS:
                locks.callback(RealFileSystem().lock(str(path)).release)
        for path in folder.iterdir():
            if path.is_dir():
                _rmtree(path)
            else:
                path.unlink()
