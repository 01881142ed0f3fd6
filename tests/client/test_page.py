"""The examples of docs/client.md work as shown, and the names beside Java's exist."""

import re
from pathlib import Path

from ottla.client import AdminClient, Consumer, Producer
from ottla.testing import Cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"
JAVA = PAGE.with_name("coming-from-java.md")


def test_examples_of_the_page(cluster: Cluster) -> None:
    """The blocks run one after the other in one namespace, and contain their assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    names = {"bootstrap": cluster.bootstrap}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_names_beside_those_of_java_exist() -> None:
    """Each method of a client that docs/coming-from-java.md names is one of the client's."""
    kinds = {"producer": Producer, "consumer": Consumer, "admin": AdminClient}
    section = JAVA.read_text(encoding="utf-8").partition("## Producers and consumers")[2]
    ours = [line.rpartition(" | ")[2] for line in section.splitlines() if line.startswith("| `")]
    names = re.findall(r"(producer|consumer|admin)\.(\w+)", "\n".join(ours))
    assert len(names) >= 20
    assert [name for kind, name in names if not hasattr(kinds[kind], name)] == []
