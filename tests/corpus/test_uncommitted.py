"""The switch that adds records of open and aborted transactions, in every reader and copy."""

import json
from collections.abc import Callable

import pytest

from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import Setting

pytestmark = pytest.mark.slow

TOPICS = ("corpus-transactions", "corpus-markers")
NOTE = "Records of open and aborted transactions count, too."
_API = "/api/v1/clusters/local"
_PAGES = "/c/local"


def _sql(setting: Setting, topic: str) -> int:
    body = {"sql": f'SELECT count(*) FROM "{topic}"', "is_read_committed": False}
    result = setting.call(f"{_API}/sql", json.dumps(body)).json
    assert result["is_read_committed"] is False
    return int(result["rows"][0][0])


def _sql_page(setting: Setting, topic: str) -> int:
    fields = {"sql": f'SELECT * FROM "{topic}"', "uncommitted": "1"}
    page = setting.session.post(f"{_PAGES}/sql", "run", fields)
    assert NOTE in page.text
    table = page.text.split('<table id="result">')[1].split("</table>")[0]
    return table.count("<tr><td")


def _statistics(setting: Setting, topic: str) -> int:
    path = f"{_API}/topics/{topic}/statistics?is_read_committed=false"
    return int(setting.call(path).json["scanned"])


def _statistics_page(setting: Setting, topic: str) -> int:
    path = f"{_PAGES}/topics/{topic}/statistics?scan=10000"
    assert NOTE not in setting.session.get(path).text
    page = setting.session.get(f"{path}&uncommitted=1").text
    assert NOTE in page
    return int(page.split("Records read</dt><dd>")[1].split("<")[0])


def _rest_search(setting: Setting, topic: str) -> int:
    request = {"topic": topic, "seek": "oldest", "limit": 500, "is_read_committed": False}
    path = f"{_API}/topics/{topic}/messages/search"
    return len(setting.call(path, json.dumps({"request": request})).json["rows"])


def _messages_page(setting: Setting, topic: str) -> int:
    path = f"{_PAGES}/topics/{topic}/messages.jsonl?seek=oldest&uncommitted=1"
    return setting.session.get(path).data.count(b"\n")


def _search(setting: Setting, topic: str) -> int:
    words = ("topic", "search", topic, "--local", "--read-uncommitted", "-f", "%o\\n")
    return len(setting.run(*words).out.splitlines())


READERS = {
    "REST SQL": _sql,
    "SQL page": _sql_page,
    "REST statistics": _statistics,
    "statistics page": _statistics_page,
    "REST search": _rest_search,
    "download": _messages_page,
    "ottla topic search": _search,
}


def _all_records(setting: Setting, topic: str) -> list[Reading]:
    return read_with_librdkafka(setting.cluster.bootstrap, topic, committed=False)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("name", READERS)
def test_readers_show_uncommitted_records_on_request(
    setting: Setting, oracle: dict[str, list[Reading]], name: str, topic: str
) -> None:
    """As many records as a plain consumer with read_uncommitted reads."""
    reader: Callable[[Setting, str], int] = READERS[name]
    expected = len(_all_records(setting, topic))
    assert expected > len(oracle[topic])
    assert reader(setting, topic) == expected


def _command(setting: Setting, source: str, target: str) -> None:
    assert setting.run("topic", "copy", source, target, "--read-uncommitted").code == 0


def _api_copy(setting: Setting, source: str, target: str) -> None:
    body = {"target": target, "with_records": True, "is_read_committed": False}
    response = setting.call(f"{_API}/topics/{source}/copy", json.dumps(body))
    assert response.status == 200, response.text


def _page_copy(setting: Setting, source: str, target: str) -> None:
    fields = {"target": target, "with_records": "1", "uncommitted": "1"}
    page = setting.session.post(f"{_PAGES}/topics/{source}", "copy", fields)
    assert page.status in (200, 303), page.text


COPIES = {"command": _command, "REST": _api_copy, "page": _page_copy}


@pytest.mark.parametrize("name", COPIES)
def test_copies_have_uncommitted_records_on_request(setting: Setting, name: str) -> None:
    """Keys and values are those of a plain consumer with read_uncommitted."""
    source, target = "corpus-transactions", f"uncommitted-{name}"
    COPIES[name](setting, source, target)
    copied = _all_records(setting, target)
    expected = _all_records(setting, source)
    assert [(row.key, row.value) for row in copied] == [(row.key, row.value) for row in expected]
