"""Certificates that are read again after a change."""

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.options import Snapshot
from ottla.cluster.options.option_tables import BROKER_OPTIONS, parse_broker_settings
from ottla.net.tls.stamps import CHECK_SECONDS
from ottla.server.authentication.certificates import Certificates
from tests.certificates import expired, self_signed
from tests.unit.net.tls.handshakes import shake

T = TypeVar("T")


class Clock(RealClock):
    """Virtual time: `next_check` lets the watch look at the files."""

    def __init__(self) -> None:
        self.sleeps: asyncio.Queue[float] = asyncio.Queue()
        self._wake: asyncio.Queue[None] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        self.sleeps.put_nowait(seconds)
        await self._wake.get()

    async def next_check(self) -> None:
        """Return when the watch has looked at the files."""
        assert await self.sleeps.get() == CHECK_SECONDS
        self._wake.put_nowait(None)
        # It sleeps again.
        seconds = await self.sleeps.get()
        self.sleeps.put_nowait(seconds)


class World:
    """The certificates of a broker with the listeners SSL, for brokers, and OUTER."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chain = self_signed(folder)
        settings = {
            "listeners": "SSL://127.0.0.1:1,OUTER://127.0.0.1:2",
            "listener.security.protocol.map": "SSL:SSL,OUTER:SSL",
            "ssl.keystore.location": str(self.chain),
            "ssl.truststore.location": str(self.chain.with_suffix(".crt")),
        }
        self.options = parse_broker_settings(settings).snapshot
        self.clock = Clock()
        self.certificates = Certificates(self.options, RealFileSystem(), self.clock)
        self.renewed: list[str] = []
        self.certificates.on_renewed = lambda name, context: self.renewed.append(name)

    def altered(self, **settings: str) -> Snapshot:
        """Return the options with others, whose dots are underscores."""
        named = {name.replace("_", "."): text for name, text in settings.items()}
        return Snapshot(BROKER_OPTIONS, {**self.options.explicit, **named})

    def replace(self, name: str = "server") -> Path:
        """Write another certificate and its key; return the certificate."""
        return self_signed(self.folder, name=name).with_suffix(".crt")

    def shows(self, certificate: Path, listener: str = "SSL") -> bool:
        """Return True if clients that trust a certificate accept the listener."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(certificate)
        server = self.certificates.server(listener)
        assert server is not None
        try:
            shake(server, client)
        except ssl.SSLCertVerificationError:
            return False
        return True


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield certificates that have been read."""
    world = World(tmp_path)
    await world.certificates.load(world.options)
    watch = asyncio.ensure_future(world.certificates.watch())
    yield world
    watch.cancel()
    await asyncio.wait([watch])


async def test_changed_certificate_is_used_for_new_connections(world: World) -> None:
    """Both listeners have it, and connections to other brokers trust the new one."""
    former, context = world.chain.with_suffix(".crt").read_bytes(), world.certificates.client()
    (world.folder / "former.crt").write_bytes(former)
    await world.clock.next_check()
    assert world.renewed == []
    new = world.replace()
    await world.clock.next_check()
    assert world.renewed == ["SSL", "OUTER"]
    assert world.certificates.renewals == {"SSL": 1, "OUTER": 1}
    assert world.shows(new)
    assert world.shows(new, "OUTER")
    assert not world.shows(world.folder / "former.crt")
    client, server = world.certificates.client(), world.certificates.server("SSL")
    assert context is not client is not None
    assert server is not None
    assert shake(server, client) == "TLSv1.3"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("no certificate"),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:200]),
        lambda path: path.with_suffix(".crt").write_text(""),
    ],
)
async def test_file_that_cannot_be_used_leaves_the_former_certificate(
    world: World, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object]
) -> None:
    """The error is logged and counted once for each change; a correct file is used then."""
    (world.folder / "former.crt").write_bytes(world.chain.with_suffix(".crt").read_bytes())
    damage(world.chain)
    for _ in range(3):
        await world.clock.next_check()
    assert world.shows(world.folder / "former.crt")
    assert world.certificates.failures == {"SSL": 1, "OUTER": 1}
    assert caplog.text.count("certificate not renewed, the former one stays listener=SSL") == 1
    assert "cannot be read" in caplog.text
    new = world.replace()
    await world.clock.next_check()
    assert world.shows(new)


async def test_altered_options_name_other_files_for_a_listener(world: World) -> None:
    """The other listener keeps its own."""
    new = world.replace("new")
    option = "listener_name_outer_ssl_keystore_location"
    await world.certificates.change(world.altered(**{option: str(world.folder / "new.pem")}))
    assert world.renewed == ["OUTER"]
    assert world.shows(new, "OUTER")
    assert not world.shows(new)
    await world.certificates.change(world.options)
    assert not world.shows(new, "OUTER")


async def test_altered_options_with_the_same_file_read_it_at_once(world: World) -> None:
    """So a certificate is renewed by Apache Kafka's tools."""
    new = world.replace()
    await world.certificates.change(world.options)
    assert world.shows(new)


async def test_options_name_no_files_of_other_folders(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A user that may alter options must not make the broker read other files."""
    other = world.folder / "other"
    other.mkdir()
    for path in (self_signed(other), Path(f"{world.folder}/other/../other/server.pem")):
        await world.certificates.change(world.altered(ssl_keystore_location=str(path)))
        assert f"{path} cannot be named while the broker runs" in caplog.text
    assert world.renewed == []
    inside = f"{world.folder}/other/../server.pem"
    await world.certificates.change(world.altered(ssl_keystore_location=inside))
    assert world.renewed == ["SSL", "OUTER"]


async def test_altered_options_that_cannot_be_used_do_not_stop_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The files of the configuration are used; those must be readable."""
    world = World(tmp_path)
    await world.certificates.load(world.altered(ssl_keystore_location=f"{tmp_path}/none.pem"))
    assert "none.pem cannot be read" in caplog.text
    assert world.shows(world.chain.with_suffix(".crt"))
    world.chain.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        await Certificates(world.options, RealFileSystem(), world.clock).load(world.options)


async def test_wrong_option_is_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The watch does not repeat it every few seconds."""
    await world.certificates.change(world.altered(ssl_keystore_type="JKS"))
    for _ in range(3):
        await world.clock.next_check()
    assert caplog.text.count("altered options of TLS are not used") == 1
    assert world.renewed == []


async def test_expired_certificate_is_not_used(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The former one stays, on listeners for clients, too."""
    former = world.certificates.expiries()
    path = expired(world.folder, "new")
    option = "listener_name_outer_ssl_keystore_location"
    await world.certificates.change(world.altered(**{option: str(path)}))
    assert f"a certificate of {path} expired at 20" in caplog.text
    assert world.certificates.failures == {"OUTER": 1}
    assert world.certificates.expiries() == former
    assert abs(former["OUTER"] - time.time() - 24 * 60 * 60) < 60


async def test_certificate_that_other_brokers_do_not_trust_is_not_used(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker would lose its followers; clients of other listeners may trust others."""
    new = world.replace("new")
    await world.certificates.change(
        world.altered(ssl_keystore_location=str(new.with_suffix(".pem")))
    )
    assert "other brokers would not accept the certificate of" in caplog.text
    assert "self-signed certificate" in caplog.text
    assert world.renewed == ["OUTER"]
    assert world.shows(new, "OUTER")
    assert not world.shows(new)


async def test_latter_of_two_changes_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the former are still being read when the latter begins."""
    names = [world.replace("first"), world.replace("second")]
    may_end, files = threading.Event(), RealFileSystem()
    in_background = RealFileSystem.in_background
    calls = 0

    async def slow(_: RealFileSystem, work: Callable[[], T]) -> T:
        nonlocal calls
        calls += 1
        # Stamps of both listeners come first, and after them the files of OUTER.
        if calls == 3:
            return await in_background(files, lambda: (may_end.wait(10), work())[1])
        return await in_background(files, work)

    monkeypatch.setattr(RealFileSystem, "in_background", slow)
    option = "listener_name_outer_ssl_keystore_location"
    changes: list[Awaitable[None]] = []
    for name in names:
        altered = world.altered(**{option: str(name.with_suffix(".pem"))})
        changes.append(asyncio.ensure_future(world.certificates.change(altered)))
        while calls < 3:
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*changes)
    assert world.shows(names[1], "OUTER")
