"""Users of PLAIN in a file of hashes."""

from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.security import scram
from ottla.security.exchanges import AuthenticationFailed
from ottla.server.authentication.logins import Logins
from ottla.server.authentication.plain_users import PlainUsers


def text_of(**passwords: str) -> str:
    """Return the content of a file."""
    return scram.users_text(
        {
            user: scram.credential_of_password(
                scram.USERS_MECHANISM, password, user.encode() * 4, scram.ITERATIONS_MIN
            )
            for user, password in passwords.items()
        }
    )


def read(path: Path) -> PlainUsers:
    """Return the users of a file."""
    return PlainUsers(str(path), RealFileSystem())


def test_password_is_checked_by_its_hash(tmp_path: Path) -> None:
    """The file has no passwords; a hash is none either, and unknown users have no hash."""
    path = tmp_path / "users"
    path.write_text("# comment\n\n" + text_of(ann="secret", ben="secret"))
    users = read(path)
    assert "secret" not in path.read_text()
    assert users.check("ann", "secret")
    assert users.check("ben", "secret")
    stored = path.read_text().splitlines()[2].partition("stored_key=")[2].partition(",")[0]
    for user, password in (("ann", "Secret"), ("ann", ""), ("eve", "secret"), ("ann", stored)):
        assert not users.check(user, password)
    path.write_text("")
    assert not read(path).check("eve", "")


def test_changed_file_counts_for_the_next_login(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file, or none, leaves the former users, with one error for each change."""
    path = tmp_path / "users"
    path.write_text(text_of(ann="secret"))
    users = read(path)
    path.write_text(text_of(ann="other", ben="secret"))
    assert users.check("ben", "secret")
    assert not users.check("ann", "secret")
    path.write_text("ann:damaged")
    for _ in range(3):
        assert users.check("ann", "other")
    assert caplog.text.count("users not read") == 1
    assert "line 1" in caplog.text
    assert "damaged" not in caplog.text
    path.write_text(text_of(eve="secret"))
    assert users.check("eve", "secret")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file or directory"),
        ("ann", "line 1 does not have another user and a credential"),
        (text_of(ann="a") * 2, "line 2 does not have another user and a credential"),
        (text_of(ann="a").replace("4096", "100"), "line 1 does not have 4096 to 16384 iterations"),
        ("ann:secret", "line 1: not a SCRAM credential"),
        ("\xff", "can't decode"),
    ],
)
def test_file_that_cannot_be_read_stops_the_start(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    """The error names the file and the line."""
    path = tmp_path / "users"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(
        ConfigError, match=r"the users of PLAIN in .*users cannot be read"
    ) as caught:
        read(path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["", "#ann", "a\nb", "a\u2028b"])
def test_name_that_a_line_cannot_have_is_refused(name: str) -> None:
    """It would be read as another user, or as a comment."""
    with pytest.raises(ValueError, match="cannot be the name of a user"):
        text_of(**{name: "secret"})
    assert list(scram.users_of(text_of(**{"a:b": "secret"}))) == ["a:b"]


def test_listener_with_a_file_has_no_other_users(tmp_path: Path) -> None:
    """Another listener has the users of its login module."""
    path = tmp_path / "users"
    path.write_text(text_of(ann="secret"))
    listeners = {
        "FILE": ListenerSecurity(("PLAIN",), users_path=str(path)),
        "MODULE": ListenerSecurity(("PLAIN",), {"ben": "secret"}),
    }
    logins = Logins(listeners, None, SeededRng(1), RealClock())
    logins.plain_users = {"FILE": read(path)}
    for listener, user in (("FILE", "ann"), ("MODULE", "ben")):
        login = logins.begin(listener, "PLAIN", is_raw=False)
        login.step(f"\0{user}\0secret".encode())
        assert login.user == user
    for listener, user in (("FILE", "ben"), ("MODULE", "ann")):
        login = logins.begin(listener, "PLAIN", is_raw=False)
        with pytest.raises(AuthenticationFailed):
            login.step(f"\0{user}\0secret".encode())
