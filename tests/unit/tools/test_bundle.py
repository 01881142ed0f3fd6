"""`ottla debug bundle` recognises secrets."""

import pytest

from ottla.tools.debug.redaction import REMOVED, clean, clean_entry, clean_text, is_secret


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password", "ssl.key.password", "sasl.jaas.config", "token", "basic.auth.user.info",
        "aws_secret_access_key", "api.key", "api-key", "delegation.token.secret.key", "oauth.credential",
        "ssl.keystore.key",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    """Their values are removed, also in nested data."""
    assert is_secret(name)
    assert clean({"a": [{name: "hunter2"}]}) == {"a": [{name: REMOVED}]}


@pytest.mark.parametrize("name", ["log.dirs", "retention.ms", "num.partitions", "listeners", "key"])
def test_names_of_other_options(name: str) -> None:
    """Their values are kept."""
    assert clean_entry(name, "value", is_sensitive=False) == "value"
    assert clean_entry(name, "value", is_sensitive=True) == REMOVED


def test_secrets_in_text() -> None:
    """Users in addresses and pairs with a password are removed wherever they are."""
    text = "a https://me:hunter2@host b password='s3cr3t' c token: tok-123 d"
    assert clean_text(text) == f"a https://{REMOVED}@host b password={REMOVED} c token: {REMOVED} d"
