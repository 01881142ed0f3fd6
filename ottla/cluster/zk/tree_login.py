"""The login of a tree that the brokers of one machine share: a JAAS file in its directory.

    directory/cluster.jaas          user and password, for the brokers' user of the machine only

Who may read the directory may read the tree, so the file adds no right. The process that holds the
lock of the directory writes it before it serves the tree for the first time. Programs of ZooKeeper
and of Apache Kafka use it as it is: KAFKA_OPTS=-Djava.security.auth.login.config=FILE.
"""

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.rng import Rng
from ottla.security.zookeeper.login import LOGIN_FILE, Login, LoginSettings

FILE = "cluster.jaas"
USER = "ottla"
_PASSWORD_BYTES = 32
_POLL_SECONDS = 0.1
_FORM = (
    'Client {{\n  org.apache.zookeeper.server.auth.DigestLoginModule required username="{}"'
    '\n  password="{}";\n}};\n'
)


def path_of(directory: str) -> str:
    """Return the path of the file."""
    return f"{directory}/{FILE}"


def java_options(directory: str) -> str:
    """Return the value of KAFKA_OPTS with which programs log in."""
    return f"-D{LOGIN_FILE}={path_of(directory)}"


def ensure(files: FileSystem, directory: str, rng: Rng) -> Login:
    """Return the login of a tree, which is created first if it does not exist; the caller holds the
    lock.

    Raises OSError, and ConfigError for a file that has no user.
    """
    path = path_of(directory)
    if not files.exists(path):
        password = rng.random_bytes(_PASSWORD_BYTES).hex()
        files.replace(path, _FORM.format(USER, password).encode())
    return read(files, directory)


async def wait_for(files: FileSystem, clock: Clock, directory: str, timeout_ms: int) -> Login:
    """Return the login when the process that holds the lock has created it; ConfigError after that
    time.
    """
    path = path_of(directory)
    deadline = clock.monotonic() + timeout_ms / 1000
    while not files.exists(path):
        if clock.monotonic() >= deadline:
            raise ConfigError(
                f"{path} does not exist, although another process serves the metadata: all brokers "
                "of a coordination.listener need the same coordination.dir"
            )
        await clock.sleep(_POLL_SECONDS)
    return read(files, directory)


def read(files: FileSystem, directory: str) -> Login:
    """Return the login of a tree; ConfigError if the file cannot be read or has no user."""
    path = path_of(directory)
    login = LoginSettings(path, None, None).login(files.read)
    if login is None:
        raise ConfigError(
            f"{path} has no section Client: stop all brokers, and delete it; the next start creates "
            "another"
        )
    return login
