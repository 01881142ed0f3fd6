"""Mock credentials look like users' credentials, and stay the same."""

import base64
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.mock_credentials import MockCredentials, mock
from ottla.security.scram import ScramCredential, ScramMechanism, parse_credential

SECRET = b"s" * 32
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
# Two salts of the Java client: random numbers of 130 bits with base 36.
JAVA_SALTS = (b"5hrdkhztmzqtvjn7xsftg8b2i", b"1a5r3v8u2c4m0q9w7t6y1z3x5k")


def credential(iterations: int = 4096, salt: bytes = b"\0" * 16) -> ScramCredential:
    """Return the credential of a user."""
    return ScramCredential(salt, b"k" * 32, b"s" * 32, iterations)


def mocks(*credentials: ScramCredential, secret: bytes = SECRET) -> MockCredentials:
    """Return the mock credentials beside these users."""
    created = MockCredentials(secret, SHA_256)
    for one in credentials:
        created.add(one)
    return created


def names(count: int) -> list[str]:
    """Return names of users who do not exist."""
    return [f"user-{number}" for number in range(count)]


@given(st.text(max_size=20))
def test_mock_depends_on_secret_mechanism_and_user_only(user: str) -> None:
    """It is the same on every broker and after a restart."""
    users = [credential(), credential(8192, b"x" * 20)]
    first = mocks(*users).credential(user)
    assert first == mocks(*reversed(users)).credential(user)
    assert first != mocks(*users, secret=b"t" * 32).credential(user)
    assert first.salt != mocks(*users).credential(user + "x").salt
    other = MockCredentials(SECRET, SHA_512)
    for one in users:
        other.add(one)
    assert other.credential(user).salt != first.salt


@pytest.mark.parametrize(
    ("iterations", "salt"), [(4096, b"\0" * 16), (10_000, b"x" * 64), (16_384, b""), (5000, b"1")]
)
def test_mock_has_the_form_of_the_users(iterations: int, salt: bytes) -> None:
    """If all users have the same iterations and length of salt, so has every mock."""
    beside = mocks(*(credential(iterations, salt) for _ in range(3)))
    for name in names(50):
        shown = beside.credential(name)
        assert (shown.iterations, len(shown.salt)) == (iterations, len(salt))


def test_mocks_have_the_salts_of_java_if_users_have() -> None:
    """Their text looks like a random number, whose first digit is not evenly distributed."""
    beside = mocks(*(credential(8192, salt) for salt in JAVA_SALTS))
    shown = [beside.credential(name) for name in names(1000)]
    assert {one.iterations for one in shown} == {8192}
    lengths = Counter(len(one.salt) for one in shown)
    assert lengths.keys() <= {21, 22, 23, 24, 25, 26}
    # 36 ** 25 / 2 ** 130 of the numbers have at most 25 digits.
    assert 0.5 < lengths[25] / 1000 < 0.7
    assert all(one.salt.startswith(b"1") for one in shown if len(one.salt) == 26)
    assert all(int(one.salt, 36) < 1 << 130 for one in shown)


def test_each_form_is_as_frequent_as_among_users() -> None:
    """A rare form does not show that the user exists, and a frequent one that it does not."""
    users = [credential(4096)] * 6 + [credential(8192)] * 3 + [credential(8192, b"x" * 40)]
    beside = mocks(*users)
    shown = [beside.credential(name) for name in names(2000)]
    shares = Counter((one.iterations, len(one.salt)) for one in shown)
    assert shares.keys() == {(4096, 16), (8192, 16), (8192, 40)}
    assert 0.55 < shares[4096, 16] / 2000 < 0.65
    assert 0.25 < shares[8192, 16] / 2000 < 0.35
    assert 0.05 < shares[8192, 40] / 2000 < 0.15


def test_mock_of_a_user_rarely_changes() -> None:
    """A user that is added or removed changes few mocks; then salt and iterations change."""
    users = [credential(4096)] * 50 + [credential(8192)] * 50
    beside = mocks(*users)
    before = [beside.credential(name) for name in names(1000)]
    beside.add(credential(4096))
    after = [beside.credential(name) for name in names(1000)]
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) < 30
    assert all(old.salt != new.salt for old, new in changed)
    beside.remove(credential(4096))
    assert [beside.credential(name) for name in names(1000)] == before


def test_without_users_a_mock_has_the_usual_form() -> None:
    """Ottla's tools create credentials of that form. The form of a removed user is forgotten."""
    beside = mocks()
    usual = beside.credential("eve")
    assert (usual.iterations, len(usual.salt)) == (4096, 16)
    beside.add(credential(8192))
    assert beside.credential("eve").iterations == 8192
    beside.remove(credential(8192))
    assert beside.credential("eve") == usual


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_mock_is_a_credential(mechanism: ScramMechanism) -> None:
    """Its keys have the length of real ones, so that checking them takes as long."""
    shown = mock(mechanism, b"salt", 5000)
    assert parse_credential(shown.text()) == shown
    size = {SHA_256: 32, SHA_512: 64}[mechanism]
    assert [len(shown.stored_key), len(shown.server_key)] == [size, size]
    assert base64.b64decode(base64.b64encode(shown.salt)) == b"salt"
