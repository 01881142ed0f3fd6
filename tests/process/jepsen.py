"""Runs Jepsen's checker of Kafka (jepsen.tests.kafka, elle) on histories in EDN.

    python -m tests.process.jepsen --class-path DIRECTORY:… HISTORY…
    python -m tests.process.jepsen --class-path DIRECTORY:… --planted

Without `--class-path` the checker is fetched with Maven from Clojars. `--planted` checks the
handmade histories of `tests/unit/testing/checkers/planted.py`: each anomaly has to be found.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.testing.checkers.transactions import edn_lines
from tests.unit.testing.checkers.planted import PLANTED, good

VERSION = "0.3.12"
_PROGRAM = Path(__file__).with_name("jepsen_checker.clj")
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<repositories><repository><id>clojars</id><url>https://repo.clojars.org</url></repository>
</repositories><dependencies><dependency><groupId>jepsen</groupId><artifactId>jepsen</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>"""


def fetched(folder: Path) -> str:
    """Return the class path of Jepsen, fetched with Maven."""
    (folder / "pom.xml").write_text(_POM)
    target = folder / "class-path"
    words = ("mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={target}")
    subprocess.run(words, cwd=folder, check=True)
    return target.read_text().strip()


def bad_anomalies(
    java: str, class_path: str, folder: Path, histories: list[Path]
) -> dict[str, list[str]]:
    """Return the anomalies of each history that Kafka's guarantees exclude; runs in a folder."""
    words = (java, "-Xmx6g", "-cp", class_path, "clojure.main", str(_PROGRAM))
    paths = (str(path.absolute()) for path in histories)
    done = subprocess.run(
        [*words, *paths], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit("the checker failed: see its message above")
    result = {}
    for line in done.stdout.splitlines():
        print(line)
        name = re.search(r':history "([^"]*)"', line)
        bad = re.search(r":bad \[([^\]]*)\]", line)
        assert name is not None, line
        assert bad is not None, line
        result[name[1]] = bad[1].replace(":", "").split()
    return result


def main() -> int:
    """Check the histories of the command line; return 1 if one is bad or a plant is not found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--class-path")
    parser.add_argument("--java", default="java")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("histories", nargs="*", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        class_path = options.class_path or fetched(folder)
        if not options.planted:
            found = bad_anomalies(options.java, class_path, folder, options.histories)
            return int(any(found.values()))
        expected = {"good": ""} | {item.jepsen: item.jepsen for item in PLANTED}
        histories = {"good": good()} | {item.jepsen: item.history() for item in PLANTED}
        for key, history in histories.items():
            (folder / f"{key}.edn").write_text("\n".join(edn_lines(history)))
        paths = [folder / f"{key}.edn" for key in histories]
        found = bad_anomalies(options.java, class_path, folder, paths)
    missed = [
        key
        for path, bad in found.items()
        for key in (Path(path).stem,)
        if (expected[key] not in bad if expected[key] else bad)
    ]
    print(f"{len(found) - len(missed)} of {len(histories)} histories judged as planted", *missed)
    return int(bool(missed) or len(found) != len(histories))


if __name__ == "__main__":
    sys.exit(main())
