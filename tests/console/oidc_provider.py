"""An identity provider that others have written: the npm package oidc-provider, in Node."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.runs import needs

VERSION = "9.13.3"
CLIENT_ID, SECRET = "ottla-console", "a secret: with/signs+"
_SCRIPT = Path(__file__).with_suffix(".mjs")
_INSTALL_S, _END_S = 120, 10


@contextmanager
def provider(console_url: str) -> Iterator[str]:
    """Run the provider for a console; yield its issuer. The package is fetched once."""
    folder = _package()
    # The provider has its address in its configuration.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    node = shutil.which("node")
    assert node is not None, "the tool has been required"
    process = subprocess.Popen(
        [node, str(_SCRIPT), str(folder), str(port), console_url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "ready":
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate(timeout=_END_S)


def _package() -> Path:
    needs.require("node")
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = root / "ottla-tests" / f"oidc-provider-{VERSION}"
    if not (folder / "node_modules" / "oidc-provider").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        npm = shutil.which("npm")
        assert npm is not None, "the tool has been required"
        command = [npm, "install", "--no-audit", "--no-fund", f"oidc-provider@{VERSION}"]
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
        if result.returncode:
            needs.give_up("node", "npm cannot fetch oidc-provider: check the registry of npm")
    return folder
