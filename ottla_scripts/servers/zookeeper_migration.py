"""The work of `zookeeper-security-migration`, with the sentences of Apache Kafka 3.9's tool."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.cluster import zookeeper_security
from ottla.cluster.secured_znodes import SECURE_ROOTS, secured, unsecured
from ottla.cluster.zk import tls
from ottla.cluster.zk.live import NO_OPTIONS
from ottla.cluster.zk.port import EnsembleUnreachable, LoginRejected, NoAuth, NoNode
from ottla.cluster.zk.tree import ROOT
from ottla.security.zookeeper.login import LOGIN_FILE, LoginSettings
from ottla.tools.zookeeper.sessions import begin
from ottla_scripts.exits import Exit, UsageError
from ottla_scripts.flags import Options
from ottla_scripts.printing import err, out
from ottla_scripts.session import read_properties

_TLS_FILE = "zk-tls-config-file"
_INCORRECT = "Incorrect configuration"
_LISTS = {"secure": secured, "unsecure": unsecured}


def run(options: Options) -> int:
    """Set the access control lists of all nodes."""
    path = options[_TLS_FILE]
    if path is not None and not Path(path).is_file():
        _fail(path)
    tls_options = NO_OPTIONS if path is None else read_properties(path)
    if not _has_certificate(tls.settings_of(tls_options)):
        _check_login()
    if options["zookeeper.acl"] not in _LISTS:
        raise UsageError(options.spec.summary)
    try:
        asyncio.run(_migrate(options, tls_options))
    except LoginRejected:
        out("Unexpected return code: -115")
        _fail(f"KeeperErrorCode = AuthFailed for {SECURE_ROOTS[0]}")
    except EnsembleUnreachable as error:
        if isinstance(error.__cause__, TimeoutError):
            _fail("Timed out waiting for connection while in state: CONNECTING")
        raise
    return 0


def _has_certificate(settings: Mapping[str, str]) -> bool:
    """Return True if the user comes from a certificate."""
    is_enabled = settings.get(tls.ENABLE, "").lower() == "true"
    return is_enabled and all(settings.get(name) for name in (tls.SOCKET, tls.KEY_STORE))


def _check_login() -> None:
    """Print Apache Kafka's errors of a user that is missing."""
    settings = LoginSettings.of(os.environ)
    if settings.file is None:
        err(
            "ERROR: No JAAS configuration file has been specified and no TLS client certificate has "
            f"been specified. Please make sure that you set the system property {LOGIN_FILE} or "
            f"provide a ZooKeeper client TLS configuration via --{_TLS_FILE} <filename> identifying at "
            "least zookeeper.ssl.client.enable, zookeeper.clientCnxnSocket, and "
            "zookeeper.ssl.keystore.location"
        )
        _fail(_INCORRECT)
    try:
        has_section = settings.options(RealFileSystem().read) is not None
    except ConfigError:
        _fail(f"Exception while loading Zookeeper JAAS login context {settings}")
    if not has_section:
        out(
            "ERROR: Security isn't enabled, most likely the file isn't set properly: "
            f"{settings.file}"
        )
        _fail(_INCORRECT)
    if not settings.is_enabled:
        _fail(f"Exception while determining if ZooKeeper is secure {settings}")


def _fail(sentence: str) -> NoReturn:
    err(sentence)
    raise Exit(1)


async def _migrate(options: Options, tls_options: Mapping[str, str]) -> None:
    acl_of = _LISTS[options["zookeeper.acl"]]
    session = await begin(
        options["zookeeper.connect"],
        timeout_ms=options["zookeeper.session.timeout"],
        connect_timeout_ms=options["zookeeper.connection.timeout"],
        acl_of=acl_of,
        creates_path=False,
        tls_options=tls_options,
    )

    async def check_paths() -> None:
        missing = await zookeeper_security.missing_roots(session)
        if missing:
            _warn(missing, is_end="enable.path.check" in options)

    try:
        await zookeeper_security.set_lists(session, acl_of, check_paths)
    except NoAuth as error:
        out("Unexpected return code: -102")
        path = error.path
        if path == ROOT:
            await check_paths()
            # Apache Kafka's tool continues, and fails when it creates the first node.
            path = SECURE_ROOTS[0]
        _fail(f"KeeperErrorCode = NoAuth for {path}")
    except NoNode:
        await check_paths()
        # The sentence of Apache Kafka's tool for a path that does not exist.
        _fail("Path length must be > 0")
    finally:
        await session.close()


def _warn(missing: Sequence[str], *, is_end: bool) -> None:
    out(f"Warning: The following secure root paths do not exist in ZooKeeper: {','.join(missing)}")
    out("That might be due to an incorrect chroot is specified when executing the command.")
    if is_end:
        out("Exit the command.")
        raise Exit(1)
