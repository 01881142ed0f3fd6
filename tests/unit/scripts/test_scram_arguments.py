"""The users of `kafka-storage --add-scram`; its errors are in the transcript `storage`."""

import base64
import hashlib

import pytest

from ottla.base.rng import SeededRng
from ottla.security.scram import ScramMechanism, credential_of, parse_credential
from ottla_scripts.logs.scram_arguments import users_of

pytestmark = pytest.mark.slow


def test_password_is_salted() -> None:
    """Salt and number of iterations have defaults; quotation marks are not part of a value."""
    users = users_of(
        ['SCRAM-SHA-256=[name="ann",password="a b"]', "SCRAM-SHA-512=[name=ann,password=c]"],
        SeededRng(1),
    )
    assert set(users["ann"]) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    credential = parse_credential(users["ann"]["SCRAM-SHA-256"])
    salted = hashlib.pbkdf2_hmac("sha256", b"a b", credential.salt, 4096)
    assert credential == credential_of(
        ScramMechanism.SCRAM_SHA_256, credential.salt, salted, iterations=4096
    )
    assert len(credential.salt) == 16


def test_salted_password_is_stored_as_given() -> None:
    """The last one of a user and a mechanism counts."""
    salted = base64.b64encode(b"salted").decode()
    given = f"SCRAM-SHA-256=[name=ann,salt=YQ==,iterations=8192,saltedpassword={salted}]"
    users = users_of(["SCRAM-SHA-256=[name=ann,password=x]", given], SeededRng(1))
    expected = credential_of(ScramMechanism.SCRAM_SHA_256, b"a", b"salted", 8192)
    assert users == {"ann": {"SCRAM-SHA-256": expected.text()}}
