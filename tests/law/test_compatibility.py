"""The matrix of clients is computed from the tests; these tests check known rows."""

import ast

import pytest

from docs import compatibility


def clients(file: str, test: str) -> set[str]:
    module = compatibility.load(compatibility.ROOT / compatibility.FOLDER / file)
    return compatibility.clients_of(module, module.defined[test])


@pytest.mark.parametrize(
    ("file", "test", "expected"),
    [
        ("test_kcat.py", "test_the_cluster_is_listed", {"kcat"}),
        (
            "test_python_clients.py",
            "test_reading_starts_at_timestamp",
            {"librdkafka", "kafka-python", "aiokafka"},
        ),
        ("test_groups.py", "test_members_of_kafka_python_share_and_commit", {"kafka-python"}),
        ("test_java_client.py", "test_reading_starts_at_timestamp", {"Apache Kafka (Java)"}),
    ],
)
def test_a_client_is_found_through_helpers_and_fixtures(
    file: str, test: str, expected: set[str]
) -> None:
    """Clients are found through tables of clients, fixtures, and programs that a test starts."""
    assert expected <= clients(file, test)


def test_test_without_client_counts_for_none() -> None:
    """A helper of another client in the same file does not count."""
    tree = ast.parse("def f():\n    return sorted([1])")
    module = compatibility.load(
        compatibility.ROOT / compatibility.FOLDER / "test_python_clients.py"
    )
    assert compatibility.clients_of(module, tree) == set()


def test_every_file_of_the_folder_is_in_the_matrix() -> None:
    """A compatibility test without a foreign client is in the wrong folder."""
    names = {module.path.name for module, _ in compatibility.rows()}
    assert names == {module.path.name for module in compatibility.test_modules()}


def test_every_client_has_a_version() -> None:
    """Versions are read from the lock file, or from the code that fetches the client."""
    known = compatibility.versions()
    assert set(known) == set(compatibility.CLIENTS)
    assert all(known.values())
