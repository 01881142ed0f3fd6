"""The console's SQLite file."""

import os
from pathlib import Path

from ottla.console.accounts.database import Database


def test_other_users_of_the_machine_cannot_read_the_file(tmp_path: Path) -> None:
    """It has hashes of passwords; the files of an earlier version are restricted, too."""
    former = os.umask(0)
    try:
        path = tmp_path / "data" / "console.sqlite3"
        database = Database(path)
        database.create("CREATE TABLE IF NOT EXISTS t (a)")
        assert path.parent.stat().st_mode & 0o777 == 0o700
        database.close()
        path.chmod(0o644)
        again = Database(path)
        again.change("INSERT INTO t VALUES (1)")
        names = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        assert set(names.values()) == {0o600}
        assert len(names) == 3
        again.close()
    finally:
        os.umask(former)
