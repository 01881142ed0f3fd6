"""The Python of Spark's workers on this machine: a script that starts the current Python.

Spark puts `pyspark.zip` in front of its workers' path. A zip has no bytecode, so that each worker
compiles PySpark: 2.3 s of a core instead of 0.7, and Spark waits 10 s for a worker. On a busy
machine no application started. The script removes the zips from the path, and a worker imports the
installed package, which has the same modules. It also drops the lines that one of PySpark's
modules prints about each of its steps.

Not done: executors on other machines, which have neither the script nor this Python.
"""

import hashlib
import logging
import os
import shlex
import sys
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from ottla.streams.spark.session.local_files import cache_folder

_log = logging.getLogger(__name__)

_SCRIPT = """#!/bin/sh
# Starts Spark's Python workers with the installed PySpark; written by ottla.
set -f
rest=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */lib/pyspark.zip | */lib/py4j-*-src.zip | */jars/spark-core_*.jar) ;;
        *) rest=$rest${{rest:+:}}$entry ;;
    esac
done
unset IFS
export PYTHONPATH="$rest"
case "$*" in
    *transform_with_state_driver_worker*) exec {python} "$@" > /dev/null ;;
esac
exec {python} "$@"
"""


def worker_python() -> str:
    """Return the path of the program that starts workers, the current Python if there is no script.

    SPARK_HOME may name another distribution of Spark, whose workers need its own modules.
    """
    package = Path(pyspark.__file__).parent
    if os.name != "posix" or Path(_find_spark_home()).resolve() != package.resolve():
        return sys.executable
    text = _SCRIPT.format(python=shlex.quote(sys.executable))
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    script = cache_folder() / f"python-{key}"
    try:
        if not script.is_file():
            _write(script, text)
    except OSError as error:
        _log.warning("Spark's workers start later: %s cannot be written (%s)", script, error)
        return sys.executable
    return str(script) if os.access(script, os.X_OK) else sys.executable


def _write(script: Path, text: str) -> None:
    script.parent.mkdir(parents=True, exist_ok=True)
    # Another program may write and start it at the same time.
    own = script.with_name(f"{script.name}.{os.getpid()}")
    own.write_text(text)
    own.chmod(0o755)
    own.replace(script)
