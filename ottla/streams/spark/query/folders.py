"""A folder on any file system that Spark can access, through Hadoop's classes in Spark's JVM."""

import contextlib
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class HadoopFolder:
    """The files of a folder, which may not exist yet."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location.rstrip("/")
        self._jvm: Any = spark._jvm
        self._configuration = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist."""
        path, files = self._at(name)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file, and the folder if it is missing; replace an existing file."""
        self._create(name, text, overwrite=True)

    def write_new(self, name: str, text: str) -> None:
        """Write a file unless it exists."""
        path, files = self._at(name)
        try:
            self._create(name, text, overwrite=False)
        except Py4JJavaError:
            # Another process was faster.
            if not files.exists(path):
                raise

    def last_number(self, name: str) -> int:
        """Return the largest number that is the name of a file in a subfolder; -1 without one.

        Spark names the files of its logs so; the name of a compacted file has a suffix.
        """
        path, files = self._at(name)
        if not files.exists(path):
            return -1
        names = [str(status.getPath().getName()) for status in files.listStatus(path)]
        stems = [file_name.removesuffix(".compact") for file_name in names]
        return max((int(stem) for stem in stems if stem.isdecimal()), default=-1)

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self.location}/{name}")
        return path, path.getFileSystem(self._configuration)

    def _create(self, name: str, text: str, *, overwrite: bool) -> None:
        path, files = self._at(name)
        with contextlib.closing(files.create(path, overwrite)) as stream:
            stream.write(bytearray(text.encode()))
