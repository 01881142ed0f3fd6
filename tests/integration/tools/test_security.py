"""`ottla security certificates` and `ottla security user`."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages import alter_user_scram_credentials as altering
from ottla.wire.messages import describe_user_scram_credentials as describing
from tests.integration.tools.conftest import Run
from tests.unit.client.conftest import ScriptedBroker


def test_certificates_are_written_for_their_owner_only(tmp_path: Path, run: Run) -> None:
    """The certificate of the authority is public; a second call adds a client."""
    folder = tmp_path / "tls"
    words = ("security", "certificates", "--to", str(folder))
    done = run(*words, "--client", "anna")
    assert (done.code, done.errors) == (0, "")
    assert b"ca.crt, ca.key, broker.pem, anna.pem" in done.out
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "broker.pem": 0o600, "anna.pem": 0o600}
    authority, broker = ((folder / name).read_bytes() for name in ("ca.crt", "broker.pem"))
    done = run(*words, "--client", "ben")
    assert (done.code, b"Wrote ben.pem to" in done.out) == (0, True)
    assert (folder / "ca.crt").read_bytes() == authority
    assert (folder / "broker.pem").read_bytes() == broker
    done = run(*words)
    assert (done.code, "add --force" in done.errors) == (1, True)
    assert run(*words, "--force").code == 0
    assert (folder / "ca.crt").read_bytes() == authority
    assert (folder / "broker.pem").read_bytes() != broker


def test_wrong_names_and_half_an_authority_are_refused(tmp_path: Path, run: Run) -> None:
    """A name cannot leave the folder, and a key is never replaced by accident."""
    words = ("security", "certificates", "--to", str(tmp_path))
    for name in ("../x", "a/b", "broker", "."):
        done = run(*words, "--client", name)
        assert (done.code, "is not a name for a client" in done.errors) == (1, True), name
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ca.key").write_text("key")
    done = run(*words)
    assert (done.code, "has ca.key without ca.crt" in done.errors) == (1, True)
    (tmp_path / "ca.crt").write_text("certificate")
    done = run(*words)
    assert (done.code, "cannot be read" in done.errors) == (1, True)


class Users:
    """A scripted broker with SCRAM users; `requests` are those that change them."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.requests: list[Any] = []
        self.code = 0
        broker.answers["AlterUserScramCredentials"] = self._alter
        broker.answers["DescribeUserScramCredentials"] = self._describe

    def _alter(self, request: Any) -> Any:
        self.requests.append(request)
        rows = [*request.deletions, *request.upsertions]
        row = altering.AlterUserScramCredentialsResult(
            user=rows[0].name, error_code=self.code, error_message=None
        )
        return altering.AlterUserScramCredentialsResponse(results=[row])

    def _describe(self, _: Any) -> Any:
        info = describing.CredentialInfo(mechanism=2, iterations=4096)
        row = describing.DescribeUserScramCredentialsResult(user="anna", credential_infos=[info])
        return describing.DescribeUserScramCredentialsResponse(results=[row])


@pytest.fixture
def users(
    new_broker: Callable[[], ScriptedBroker], monkeypatch: pytest.MonkeyPatch, run: Run
) -> Users:
    """Return the users of a scripted broker, to which commands connect."""
    broker = new_broker()
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    return Users(broker)


def test_password_is_read_from_standard_input(users: Users, run: Run) -> None:
    """It is not on the command line, and the broker receives a salted hash."""
    words = ("security", "user", "anna")
    done = run(*words, "--iterations", "8192", stdin=b"pass word\nrest")
    assert (done.code, done.out) == (0, b"Set the SCRAM-SHA-512 password of anna.\n")
    (row,) = users.requests[0].upsertions
    assert (row.name, row.mechanism, row.iterations) == ("anna", 2, 8192)
    assert b"pass word" not in bytes(row.salted_password) + bytes(row.salt)
    done = run(*words)
    assert (done.code, "the password is empty" in done.errors) == (1, True)
    assert len(users.requests) == 1


def test_users_are_listed_and_deleted(users: Users, run: Run) -> None:
    """Without a name the command lists; an error of the cluster ends it with 1."""
    done = run("security", "user")
    assert (done.code, done.rows) == (0, [["anna", "SCRAM-SHA-512", "4096"]])
    assert run("security", "user", "anna", "--delete").code == 0
    (row,) = users.requests[0].deletions
    assert (row.name, row.mechanism) == ("anna", 2)
    assert run("security", "user", "--delete").code == 2
    users.code = int(ErrorCode.RESOURCE_NOT_FOUND)
    assert run("security", "user", "anna", "--delete").code == 1


def test_users_of_a_file_are_changed_without_a_cluster(tmp_path: Path, run: Run) -> None:
    """The file is for its owner only, and has no passwords; a damaged one is not replaced."""
    path = tmp_path / "users"
    words = ("security", "user", "--file", str(path))
    assert run(*words, "anna", stdin=b"pass word").code == 0
    assert run(*words, "ben", stdin=b"other").code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    anna, ben = path.read_text().splitlines()
    assert (anna.partition(":")[0], ben.partition(":")[0]) == ("anna", "ben")
    assert "pass word" not in anna
    assert run(*words, "anna", stdin=b"new").code == 0
    changed = path.read_text().splitlines()
    assert (changed[0] != anna, changed[1]) == (True, ben)
    assert run(*words, "anna", "--delete").code == 0
    assert path.read_text().splitlines() == [ben]
    done = run(*words, "anna", "--delete")
    assert (done.code, "has no user anna" in done.errors) == (1, True)
    done = run(*words, "#x", stdin=b"secret")
    assert (done.code, "cannot be the name of a user" in done.errors) == (1, True)
    assert run(*words).code == 2
    path.write_text("damaged")
    done = run(*words, "ben", stdin=b"secret")
    assert (done.code, "cannot be changed: line 1" in done.errors) == (1, True)
    assert path.read_text() == "damaged"
