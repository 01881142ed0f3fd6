"""Clients, scripts, groups of our own and the console on secured listeners of Apache Kafka."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import AdminClient, Consumer, ConsumerRecord, Producer
from ottla.client.config.properties import write_properties
from ottla.client.errors import NotReachable
from ottla.console.accounts import passwords
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.tools import main
from ottla_scripts import entry
from tests.compat.secured import JAAS, PASSWORD, Secured
from tests.console.chromium import admin_page, chromium, without_errors
from tests.console.session import PASSWORD as CONSOLE_PASSWORD
from tests.console.session import ConsoleSession

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Apache Kafka 4.3.0 with secured listeners."""
    node = Secured(tmp_path_factory.mktemp("secured") / "kafka")
    node.start()
    try:
        node.add_users()
        yield node
    finally:
        node.stop()


def topics_of(settings: dict[str, Any]) -> list[str]:
    """Return the topics that the admin client lists."""
    with AdminClient(settings) as admin:
        return [topic.name for topic in admin.list_topics()]


def wait_until(is_true: Callable[[], bool]) -> None:
    """Call until it returns true; each call is a request."""
    deadline = time.monotonic() + 15
    while not is_true():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_user_is_authenticated(kafka: Secured, protocol: str, mechanism: str) -> None:
    """With the options of the Java client; a wrong password is refused by the broker."""
    settings = kafka.settings(protocol, mechanism)
    assert "t" in topics_of(settings)
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace('"ann"', '"bob"')
    with pytest.raises(ApiError, match="refuses the user: Authentication failed") as refused:
        topics_of(settings)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_delegation_tokens_are_issued_renewed_and_deleted(kafka: Secured) -> None:
    """Only an authenticated user gets a token, and a client logs in with it."""
    with AdminClient(kafka.settings("SASL_PLAINTEXT", "PLAIN")) as admin:
        token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert (token.owner, token.requester) == ("User:ann", "User:ann")
        assert token.max_ms == token.issue_ms + 3_600_000
        # A change of metadata is visible a moment after it was confirmed.
        wait_until(lambda: admin.describe_delegation_tokens() == [token])
        assert admin.describe_delegation_tokens(["User:bob"]) == [token]
        assert admin.describe_delegation_tokens(["User:eve"]) == []
        settings = kafka.settings("SASL_PLAINTEXT", "SCRAM-SHA-256")
        password = base64.b64encode(token.hmac).decode()
        settings["sasl.jaas.config"] = (
            f"{JAAS}.scram.ScramLoginModule required "
            f'username="{token.token_id}" password="{password}" tokenauth="true";'
        )
        assert "t" in topics_of(settings)
        settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace("true", "false")
        with pytest.raises(ApiError, match="refuses the user"):
            topics_of(settings)
        expiry_ms = admin.renew_delegation_token(token.hmac, period_ms=60_000)
        assert token.issue_ms < expiry_ms < token.max_ms
        wait_until(lambda: admin.describe_delegation_tokens()[0].expiry_ms == expiry_ms)
        assert admin.expire_delegation_token(token.hmac, period_ms=30_000) < expiry_ms
        admin.expire_delegation_token(token.hmac)
        wait_until(lambda: admin.describe_delegation_tokens() == [])
        with pytest.raises(ApiError, match="There is no such delegation token") as caught:
            admin.renew_delegation_token(token.hmac)
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    with AdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        with pytest.raises(ApiError) as caught:
            admin.create_delegation_token()
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_tokens_are_managed_by_verbs(
    kafka: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ottla token` names a token by its id; --owner selects tokens that a user may renew."""
    settings = kafka.settings("SASL_PLAINTEXT", "PLAIN")
    file = tmp_path / "client.properties"
    file.write_text(write_properties(settings), "utf-8")
    cluster = ("-b", settings["bootstrap.servers"], "--command-config", str(file))

    def run(*words: str) -> Any:
        return json.loads(run_verb(capsys, "token", *words, *cluster, "--output", "json"))

    token = run("create", "--renewer", "User:cid", "--max-lifetime", "1h")
    assert (token["owner"], token["renewers"]) == ("User:ann", ["User:cid"])
    assert token["max_ms"] == token["issue_ms"] + 3_600_000
    # A change of metadata is visible a moment after it was confirmed.
    wait_until(lambda: run("list", "--owner", "User:cid") == [token])
    assert token in run("list")
    assert run("renew", token["hmac"], "--period", "1m")["expiry_ms"] < token["expiry_ms"]
    assert run("expire", token["token_id"], "--yes")["deleted"]
    wait_until(lambda: run("list", "--owner", "User:cid") == [])
    assert main.run(["token", "renew", token["token_id"], *cluster]) == 1
    assert f"no token has the id '{token['token_id']}'" in capsys.readouterr().err


def test_a_client_shows_its_certificate(kafka: Secured) -> None:
    """In a file, or as text; without one the broker ends the connection."""
    settings = kafka.settings("SSL")
    assert "t" in topics_of({**settings, "ssl.keystore.location": str(kafka.client)})
    text = kafka.client.read_text("utf-8")
    key, mark, rest = text.partition("-----END PRIVATE KEY-----\n")
    chain = {"ssl.keystore.key": key + mark, "ssl.keystore.certificate.chain": rest}
    assert "t" in topics_of({**settings, **chain})
    with pytest.raises(NotReachable):
        topics_of(settings)


def test_an_unknown_certificate_is_refused(kafka: Secured) -> None:
    """The error has the reason; so does the one for a listener that has no TLS."""
    settings = kafka.settings("SASL_SSL", "PLAIN")
    unknown = {**settings, "ssl.truststore.location": str(kafka.client.with_suffix(".crt"))}
    with pytest.raises(NotReachable, match=r"TLS: .*certificate verify failed"):
        topics_of(unknown)
    with pytest.raises(NotReachable, match="with TLS"):
        topics_of({**settings, "bootstrap.servers": kafka.bootstrap})


def test_a_mechanism_that_is_not_offered_is_named(kafka: Secured) -> None:
    """A listener without SASL offers none."""
    settings = kafka.settings("SASL_PLAINTEXT", "PLAIN")
    with pytest.raises(ApiError, match=r"sasl\.mechanism=PLAIN") as refused:
        topics_of({**settings, "bootstrap.servers": kafka.bootstrap})
    assert refused.value.code in (
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
    )


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_one_file_serves_clients_and_scripts(
    kafka: Secured, protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kafka-topics, the console consumer, and a member with the StickyAssignor."""
    settings = kafka.certified() if protocol == "SSL" else kafka.settings(protocol, "SCRAM-SHA-512")
    file = tmp_path / "client.properties"
    file.write_text(write_properties(settings), "utf-8")
    topic = protocol.lower()
    cluster = ["--bootstrap-server", settings["bootstrap.servers"], "--command-config", str(file)]
    created = ["--create", "--topic", topic, "--partitions", "3"]
    assert entry.run("kafka-topics", [*cluster, *created]) == 0
    with Producer(file) as producer:
        for number in range(3):
            producer.send(topic, b"%d" % number, partition=number)
    capsys.readouterr()
    words = ["--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"]
    assert entry.run("kafka-console-consumer", [*cluster, *words]) == 0
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "2"]
    sticky = {"partition_assignment_strategy": "sticky", "auto_offset_reset": "earliest"}
    records: list[ConsumerRecord] = []
    with Consumer(topic, config=file, group_id=topic, **sticky) as consumer:
        while len(records) < 3:
            records += consumer.poll(1)
        consumer.commit()
    assert sorted(record.value for record in records) == [b"0", b"1", b"2"]
    with AdminClient(file) as admin:
        committed = admin.list_group_offsets(topic)
    assert {key.partition: row.offset for key, row in committed.items()} == {0: 1, 1: 1, 2: 1}


def run_verb(capsys: pytest.CaptureFixture[str], *command_line: str) -> str:
    """Run a command of `ottla` and return its standard output."""
    capsys.readouterr()
    assert main.run(command_line) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_profile_serves_every_kind_of_verb(
    kafka: Secured,
    protocol: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Administration, records through librdkafka, and copies to another cluster."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    settings = kafka.certified() if protocol == "SSL" else kafka.settings(protocol, "PLAIN")
    file = tmp_path / "client.properties"
    file.write_text(write_properties({**settings, "group.id": "not-used"}), "utf-8")
    topic, lines = f"verbs-{protocol.lower()}", tmp_path / "lines"
    lines.write_text("one\ntwo\n", "utf-8")
    secured = ("--command-config", str(file))
    run_verb(capsys, "profile", "create", "k", "-b", settings["bootstrap.servers"], *secured)
    run_verb(capsys, "topic", "create", topic)
    run_verb(capsys, "produce", topic, "-l", str(lines))
    assert run_verb(capsys, "consume", topic, "-e").split() == ["one", "two"]
    assert run_verb(capsys, "consume", topic, "-c", "2", "-G", topic).split() == ["one", "two"]
    assert topic in run_verb(capsys, "group", "list")
    for words in (("produce", topic), ("consume", topic), ("latency", topic)):
        run_verb(capsys, "perf", *words, "--records", "2")
    run_verb(capsys, "perf", "verifiable-produce", topic, "--records", "2")
    run_verb(capsys, "perf", "verifiable-consume", topic, "-G", "verifiers", "--records", "2")
    copy = ("topic", "copy", topic, f"{topic}-copy", "--to", settings["bootstrap.servers"])
    run_verb(capsys, *copy, "--to-config", str(file))
    assert run_verb(capsys, "topic", "search", f"{topic}-copy", "--value", "two").count("two") == 1
    assert main.run(["topic", "list", "-b", settings["bootstrap.servers"]]) == 1


REFUSAL = "refuses the login of the console"
# A part of the password that HTML and JSON do not escape.
SECRET = PASSWORD.partition('"')[2]


@pytest.fixture(scope="module")
def console(kafka: Secured) -> Iterator[ConsoleServer]:
    """Return a console of the same cluster by TLS and a certificate, by SASL, with a wrong
    password, and in plain text at the port of SASL.
    """
    former = passwords.COST, passwords.PARALLEL
    passwords.COST, passwords.PARALLEL = 16, 1
    login = kafka.settings("SASL_SSL", "SCRAM-SHA-512")
    wrong = login | {"sasl.jaas.config": login["sasl.jaas.config"].replace("b,c=d", "b,c=e")}
    clusters = {"certified": kafka.certified(), "local": login, "wrong": wrong, "plain": {}}
    settings = ConsoleSettings(
        tuple(
            ClusterSettings(
                name, kafka.addresses["SSL" if name == "certified" else "SASL_SSL"], row
            )
            for name, row in clusters.items()
        ),
        ":memory:",
        port=0,
        first_password=CONSOLE_PASSWORD,
        sample_s=3600.0,
    )
    server = ConsoleServer(settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        passwords.COST, passwords.PARALLEL = former


def call(session: ConsoleSession, method: str, path: str, body: Any = None) -> Any:
    """Call the API; return the value of its response, which does not contain the password."""
    credentials = base64.b64encode(f"admin:{CONSOLE_PASSWORD}".encode()).decode()
    headers = {"authorization": f"Basic {credentials}", "content-type": "application/json"}
    text = "" if body is None else json.dumps(body)
    response = session.request(method, f"/api/{path}", text, headers)
    assert SECRET not in response.text
    return response.json


def ask_tool(session: ConsoleSession, name: str, **arguments: Any) -> Any:
    """Call a tool of the MCP server."""
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return call(session, "POST", "mcp", message)["result"]["structuredContent"]


def admin_of(console: ConsoleServer) -> ConsoleSession:
    """Return a session of the console's admin."""
    session = ConsoleSession(console.url)
    session.login("admin", CONSOLE_PASSWORD)
    return session


@pytest.mark.parametrize("name", ["certified", "local"])
def test_the_console_works_on_a_secured_cluster(console: ConsoleServer, name: str) -> None:
    """Pages, changes, records through librdkafka, search, live tail, SQL, API and MCP server."""
    session, topic = admin_of(console), f"console-{name}"
    cluster = f"v1/clusters/{name}"
    call(session, "POST", f"{cluster}/topics", {"topic": {"name": topic, "partitions": 1}})
    record = {"topic": topic, "value": '{"price": 7}'}
    messages = f"{cluster}/topics/{topic}/messages"
    produced = call(session, "POST", messages, {"request": record})
    assert "error" not in produced
    assert [row["value"]["text"] for row in call(session, "GET", messages)["rows"]] == [
        record["value"]
    ]
    query = "seek=oldest&operator0=contains&text0=price&field0=value"
    found = session.events(f"/c/{name}/topics/{topic}/search.events?{query}")
    assert sum(data["count"] for event, data in found if event == "records") == 1
    rows = call(session, "POST", f"{cluster}/sql", {"sql": f'SELECT sum(price) FROM "{topic}"'})
    assert rows["rows"] == [[7]]
    for page in ("overview", "brokers", "topics", f"topics/{topic}", "groups", "streams",
                 "transactions?hanging=1", "acls", "quotas", "reassignments", "brokers/1/settings",
                 f"topics/{topic}/partitions/0"):  # fmt: skip
        response = session.get(f"/c/{name}/{page}")
        assert (response.status, response.alert) == (200, ""), page
        assert SECRET not in response.text
    console.console.sampler.sample(console.console.clusters.get(name))
    assert call(session, "GET", f"{cluster}/topics/{topic}/history")["total"] >= 1
    assert ask_tool(session, "read_messages", cluster=name, topic=topic)["rows"]
    clusters = ask_tool(session, "list_clusters")["items"]
    protocols = [(row["name"], row["security_protocol"]) for row in clusters]
    assert protocols == [
        ("certified", "SSL"),
        ("local", "SASL_SSL"),
        ("wrong", "SASL_SSL"),
        ("plain", "PLAINTEXT"),
    ]
    assert topic in session.get("/audit").text
    assert SECRET not in session.get("/audit.csv").text
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            call(session, "POST", messages, {"request": record | {"value": "fresh"}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for event, data in session.events(f"/c/{name}/topics/{topic}/tail.events"):
            if event == "records" and data["count"]:
                assert "fresh" in data["html"]
                break
    finally:
        stop.set()
        writer.join()


def test_the_console_reports_a_wrong_password(console: ConsoleServer) -> None:
    """On pages and in the API: with the broker's reason, and with the remedy."""
    session = admin_of(console)
    response = session.get("/c/wrong/topics")
    assert response.status == 503
    assert REFUSAL in response.alert
    assert "Authentication failed" in response.alert
    assert "--command-config" in response.alert
    assert "does not answer" not in response.text.partition("<main")[2]
    assert "b,c=e" not in response.text
    error = call(session, "GET", "v1/clusters/wrong/topics")["error"]
    assert error["code"] == "CLUSTER_REFUSES_LOGIN"
    assert error["message"] == response.alert
    start = session.get("/").text
    assert REFUSAL in start
    assert "b,c=e" not in start


def test_the_console_reports_a_wrong_protocol(console: ConsoleServer) -> None:
    """A port of TLS does not respond in plain text: the sentence names the option."""
    response = admin_of(console).get("/c/plain/topics")
    assert response.status == 503
    assert "security.protocol=PLAINTEXT" in response.alert


def test_a_browser_shows_a_secured_cluster(console: ConsoleServer) -> None:
    """The overview names the protocol; topics and records are shown, and the refused login."""
    session = admin_of(console)
    call(session, "POST", "v1/clusters/local/topics", {"topic": {"name": "seen", "partitions": 1}})
    record = {"topic": "seen", "key": "k", "value": "through TLS"}
    call(session, "POST", "v1/clusters/local/topics/seen/messages", {"request": record})
    with chromium() as browser, admin_page(browser, console.url) as watched:
        with without_errors(watched) as page:
            expect(page.get_by_role("link", name="seen", exact=True)).to_be_visible()
            page.goto("/c/local/topics/seen/messages?seek=oldest")
            expect(page.get_by_text("through TLS").first).to_be_visible()
            page.goto("/c/local/overview")
            expect(page.get_by_text("SASL_SSL", exact=True)).to_be_visible()
            assert watched.violations() == []
        page.goto("/c/wrong/overview")
        expect(page.get_by_role("heading", name="The cluster refuses the console")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text(REFUSAL)
        assert watched.violations() == []
