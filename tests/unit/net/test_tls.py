"""Contexts of TLS from files."""

from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.net.tls import TlsFiles, client_context, server_context
from tests.certificates import self_signed


@pytest.mark.parametrize("context", [server_context, client_context])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, context: object) -> None:
    """The sentence has the option and the file."""
    assert callable(context)
    chain = str(self_signed(tmp_path))
    (tmp_path / "empty.pem").write_text("")
    empty, missing = str(tmp_path / "empty.pem"), str(tmp_path / "missing.pem")
    for files, option, name in (
        (TlsFiles(missing, "", None, "none", True), "ssl.keystore.location", missing),
        (TlsFiles(empty, "", None, "none", True), "ssl.keystore.location", empty),
        (TlsFiles(chain, "", missing, "required", True), "ssl.truststore.location", missing),
        (TlsFiles(chain, "", empty, "required", True), "ssl.truststore.location", empty),
    ):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            context(files)
        assert f"{option}={name}" in str(caught.value)
    context(TlsFiles(chain, "", chain, "required", True))
