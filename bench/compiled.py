"""Compiles the load generators written in C, once for each version of their source."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def compiled(source: str, libraries: Sequence[Path] = ()) -> Path | None:
    """Return a C file of this folder as a program, linked with shared libraries; None without a
    compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    path = Path(__file__).with_name(source)
    version = hashlib.sha256(path.read_bytes() + repr(libraries).encode()).hexdigest()[:16]
    program = Path(tempfile.gettempdir()) / f"ottla-bench-{path.stem}-{version}"
    if not program.exists():
        fresh = program.with_suffix(".new")
        links = [
            word for library in libraries for word in (str(library), f"-Wl,-rpath,{library.parent}")
        ]
        command = [compiler, "-O2", "-o", str(fresh), str(path), *links]
        subprocess.run(command, check=True)
        fresh.rename(program)
    return program
