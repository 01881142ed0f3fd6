"""Checkpoints on a local disk: files as Hadoop creates them, but without processes."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MODES = ("644", "600", "755", "700", "444", "1777")


def java(spark: SparkSession) -> Any:
    """Return Spark's JVM."""
    return spark._jvm


def hadoop(spark: SparkSession) -> Any:
    """Return Hadoop's package of file systems in Spark's JVM."""
    return java(spark).org.apache.hadoop.fs


def files(spark: SparkSession) -> Any:
    """Return Spark's local file system."""
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    return hadoop(spark).FileSystem.getLocal(configuration).getRaw()


def context(spark: SparkSession) -> Any:
    """Return it as a FileContext, which writes the offsets and commits of streams."""
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    return hadoop(spark).FileContext.getLocalFSFileContext(configuration)


def seconds_of_children(spark: SparkSession) -> float:
    """Return the CPU time of the child processes that Spark's JVM has waited for."""
    pid = int(java(spark).java.lang.ProcessHandle.current().pid())
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def test_sessions_use_our_classes(spark: SparkSession) -> None:
    """FileSystem and FileContext are our classes, compiled at the first start."""
    assert files(spark).getClass().getName() == "ottla.RawFiles"
    assert context(spark).getDefaultFileSystem().getClass().getName() == "ottla.LocalContext"


@pytest.mark.parametrize("mode", MODES)
def test_permissions_are_set_as_requested(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """They are those that `chmod` would set, including the sticky bit."""
    path = tmp_path / "file"
    path.touch()
    permission = hadoop(spark).permission.FsPermission(mode)
    files(spark).setPermission(hadoop(spark).Path(str(path)), permission)
    assert path.stat().st_mode & 0o7777 == int(mode, 8)


def test_new_files_have_permissions_of_the_mask(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's default mask is 022."""
    stream = files(spark).create(hadoop(spark).Path(str(tmp_path / "made")), True)
    stream.close()
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o644


def test_the_status_of_links_and_files(spark: SparkSession, tmp_path: Path) -> None:
    """The status of a link has its target, the status of a file its size; a missing path is an
    error.
    """
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"abc")
    link.symlink_to(target)
    status = files(spark).getFileLinkStatus(hadoop(spark).Path(str(link)))
    assert status.isSymlink()
    assert status.getSymlink().toUri().getPath() == str(target)
    plain = files(spark).getFileLinkStatus(hadoop(spark).Path(str(target)))
    assert not plain.isSymlink()
    assert plain.getLen() == 3
    with pytest.raises(Exception, match="FileNotFoundException"):
        files(spark).getFileLinkStatus(hadoop(spark).Path(str(tmp_path / "none")))


def test_files_are_written_and_renamed_without_processes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Fifty writes of the kind for an offset log use no CPU time of child processes."""
    jvm, fs = java(spark), hadoop(spark)
    assert jvm is not None
    file_context: Any = context(spark)
    overwrite = fs.Options.Rename.OVERWRITE
    flags = jvm.java.util.EnumSet.of(fs.CreateFlag.CREATE, fs.CreateFlag.OVERWRITE)
    options = spark.sparkContext._gateway.new_array(fs.Options.CreateOpts, 0)  # type: ignore[union-attr]
    renames = spark.sparkContext._gateway.new_array(fs.Options.Rename, 1)  # type: ignore[union-attr]
    renames[0] = overwrite
    before = seconds_of_children(spark)
    for number in range(50):
        path = fs.Path(str(tmp_path / f"{number}.tmp"))
        file_context.create(path, flags, options).close()
        file_context.rename(path, fs.Path(str(tmp_path / str(number))), renames)
    assert seconds_of_children(spark) == before
    assert {file.name for file in tmp_path.glob("[0-9]*")} == {str(index) for index in range(50)}
