"""Users, passwords and sessions of the console."""

import hashlib
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.console.accounts import passwords, sessions
from ottla.console.accounts import users as users_module
from ottla.console.accounts.database import Database
from ottla.console.accounts.roles import Role
from ottla.console.accounts.sessions import Sessions
from ottla.console.accounts.users import AccountError, Users
from tests.unit.console.clocks import SetClock

PASSWORD = "a long password"
COST, BLOCK = passwords.COST, passwords.BLOCK


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "COST", 16)
    monkeypatch.setattr(passwords, "PARALLEL", 1)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def database() -> Database:
    return Database(":memory:")


@pytest.fixture
def users(database: Database, clock: SetClock) -> Users:
    return Users(database, clock)


def test_a_hash_needs_a_block_that_the_system_gets_back() -> None:
    """glibc keeps freed blocks of less than 32 MiB in each thread's heap, and larger ones never."""
    assert 128 * BLOCK * COST >= 32 * 1024 * 1024


def test_one_password_is_hashed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many logins at once need the memory of one."""
    scrypt, is_busy, overlaps = hashlib.scrypt, threading.Lock(), []

    def watched(*words: Any, **options: Any) -> bytes:
        overlaps.append(not is_busy.acquire(blocking=False))
        threading.Event().wait(0.005)
        is_busy.release()
        return scrypt(*words, **options)

    monkeypatch.setattr(passwords.hashlib, "scrypt", watched)
    threads = [threading.Thread(target=passwords.hash_password, args=(PASSWORD,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [False] * 5


def test_first_start_creates_an_admin_with_a_one_time_password(users: Users) -> None:
    """The first start creates the admin; later starts change nothing."""
    password = users.create_first()
    assert password is not None
    user = users.login("admin", password)
    assert user is not None
    assert (user.role, user.must_change) == (Role.ADMIN, True)
    assert users.create_first() is None


def test_a_given_first_password_needs_no_change(users: Users) -> None:
    """The password of the environment variable is not printed and may stay."""
    assert users.create_first(PASSWORD) is None
    user = users.login("admin", PASSWORD)
    assert user is not None
    assert not user.must_change


def test_a_wrong_password_and_an_unknown_user_are_refused(users: Users) -> None:
    """Neither logs in."""
    users.create("ann", PASSWORD, Role.VIEWER)
    assert users.login("ann", PASSWORD + "!") is None
    assert users.login("bob", PASSWORD) is None


def test_the_database_has_no_password_in_plain_text(tmp_path: Path) -> None:
    """Only a salted hash is stored, in a file that only its owner can read."""
    database = Database(tmp_path / "console.sqlite3")
    Users(database, SetClock()).create("ann", PASSWORD, Role.VIEWER)
    database.close()
    stored = sqlite3.connect(tmp_path / "console.sqlite3").execute("SELECT password FROM users")
    assert stored.fetchone()[0].startswith("scrypt$16$8$1$")
    assert PASSWORD.encode() not in (tmp_path / "console.sqlite3").read_bytes()
    assert stat.S_IMODE((tmp_path / "console.sqlite3").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 65, "<b>", "-x"])
def test_a_user_name_that_is_not_allowed_is_refused(users: Users, name: str) -> None:
    """Names have letters, digits and a few signs."""
    with pytest.raises(AccountError, match="not allowed"):
        users.create(name, PASSWORD, Role.VIEWER)


@pytest.mark.parametrize("password", ["short", "x" * 201])
def test_a_password_of_a_wrong_length_is_refused(users: Users, password: str) -> None:
    """Passwords have 8 to 200 characters."""
    with pytest.raises(AccountError, match="8 to 200"):
        users.create("ann", password, Role.VIEWER)


def test_the_last_admin_can_neither_be_deleted_nor_degraded(users: Users) -> None:
    """One admin always remains."""
    users.create("ann", PASSWORD, Role.ADMIN)
    with pytest.raises(AccountError, match="last admin"):
        users.delete("ann")
    with pytest.raises(AccountError, match="last admin"):
        users.set_role("ann", Role.VIEWER)
    users.create("bob", PASSWORD, Role.ADMIN)
    users.set_role("ann", Role.VIEWER)
    ann = users.find("ann")
    assert ann is not None
    assert ann.role is Role.VIEWER


def test_the_new_password_must_differ(users: Users) -> None:
    """A one-time password cannot be chosen again."""
    users.create("ann", PASSWORD, Role.VIEWER)
    with pytest.raises(AccountError, match="old one"):
        users.set_password("ann", PASSWORD)


def test_a_session_ends_after_idle_time_and_after_its_life(
    database: Database, users: Users, clock: SetClock
) -> None:
    """Use keeps a session alive, but not for ever."""
    users.create("ann", PASSWORD, Role.VIEWER)
    table = Sessions(database, users, clock)
    token = table.open("ann")
    idle_s = sessions.IDLE_MS / 1000
    for _ in range(14):
        clock.advance(idle_s - 1)
        assert table.find(token) is not None
    clock.advance(60)
    assert table.find(token) is None
    other = table.open("ann")
    clock.advance(idle_s + 1)
    assert table.find(other) is None


def test_a_session_ends_with_logout_and_with_its_user(
    database: Database, users: Users, clock: SetClock
) -> None:
    """Closed sessions and sessions of deleted users are unknown."""
    users.create("ann", PASSWORD, Role.VIEWER)
    users.create("eve", PASSWORD, Role.ADMIN)
    table = Sessions(database, users, clock)
    first, second, third = table.open("ann"), table.open("ann"), table.open("ann")
    session = table.find(first)
    assert session is not None
    table.close(session.key)
    assert table.find(first) is None
    remaining = table.find(second)
    assert remaining is not None
    table.close_all("ann", except_key=remaining.key)
    assert table.find(third) is None
    users.delete("ann")
    assert table.find(second) is None


def test_a_token_and_a_csrf_token_are_not_in_the_database(
    database: Database, users: Users, clock: SetClock
) -> None:
    """The database has a hash of the token; a forged CSRF token is refused."""
    users.create("ann", PASSWORD, Role.VIEWER)
    table = Sessions(database, users, clock)
    token = table.open("ann")
    stored = database.row("SELECT token FROM sessions")
    assert stored is not None
    assert token not in stored["token"]
    session = table.find(token)
    assert session is not None
    assert session.has_csrf(session.csrf)
    assert not session.has_csrf("")
    assert not session.has_csrf(session.csrf + "ä")


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> list[Users]:
    """Return the users of two consoles with one file; each waits with a hash for the other's."""
    both, hash_password = threading.Barrier(2), passwords.hash_password

    def after_both(password: str) -> str:
        both.wait(5)
        return hash_password(password)

    monkeypatch.setattr(users_module, "hash_password", after_both)
    return [Users(Database(tmp_path / "console.sqlite3"), clock) for _ in range(2)]


def test_a_file_that_another_console_creates_is_waited_for(tmp_path: Path) -> None:
    """The switch to WAL fails at once while another connection is about to write: it is retried."""
    path = tmp_path / "console.sqlite3"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor() as executor:
        opening = executor.submit(Database, path)
        assert not wait([opening], 0.1).done
        other.execute("COMMIT")
        database = opening.result(5)
    assert database.row("PRAGMA journal_mode")[0] == "wal"
    database.close()
    other.close()


def test_consoles_that_start_at_the_same_time_create_one_admin(stores: list[Users]) -> None:
    """Both have found no user before either has stored one: one password is valid, and shown."""
    with ThreadPoolExecutor() as executor:
        results = [*executor.map(Users.create_first, stores)]
    (password,) = filter(None, results)
    assert stores[0].login("admin", password) is not None
    assert [user.name for user in stores[1].all()] == ["admin"]


def test_two_consoles_that_create_the_same_user_report_it(stores: list[Users]) -> None:
    """The second is refused with a sentence, and the password of the first stays."""
    with ThreadPoolExecutor() as executor:
        creating = [executor.submit(store.create, "ann", PASSWORD, Role.VIEWER) for store in stores]
    errors = [future.exception() for future in creating]
    (error,) = filter(None, errors)
    assert isinstance(error, AccountError)
    assert "already exists" in str(error)


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    """The error names the file and says what to do; the file stays as it is."""
    path = tmp_path / "console.sqlite3"
    path.write_text("my notes of the week")
    with pytest.raises(ConfigError, match=r"console\.sqlite3.*move the file away"):
        Database(path)
    assert path.read_text() == "my notes of the week"


def test_an_admin_with_a_login_link_has_no_password(users: Users) -> None:
    """No password logs in; the first own one needs no old one, and the next one does."""
    assert users.create_first(has_login_link=True) is None
    user = users.find("admin")
    assert user is not None and not user.must_change
    assert users.login("admin", "") is None
    assert not users.needs_old_password(user)
    assert users.create_first(has_login_link=True) is None
    users.set_password("admin", PASSWORD)
    assert users.needs_old_password(user)
    assert users.create_first() is None


def test_an_admin_without_a_password_gets_one_at_a_start_without_a_link(users: Users) -> None:
    """The console listens on another address now: only a password logs in."""
    users.create_first(has_login_link=True)
    password = users.create_first()
    assert password is not None
    user = users.login("admin", password)
    assert user is not None and user.must_change
    assert not users.needs_old_password(user)
