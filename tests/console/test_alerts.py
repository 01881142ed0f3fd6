"""Alerts on their page and in the API: forms, roles, secrets, wrong input."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.console.alerts.addresses import parse_networks
from ottla.console.server import ConsoleServer
from tests.console.session import PASSWORD, ConsoleSession
from tests.unit.console.alerts.receivers import Receiver, running

pytestmark = pytest.mark.slow

RULE = {
    "name": "lag of billing",
    "kind": "lag",
    "threshold": "5",
    "for_s": "0",
    "severity": "warning",
}
SECRET_URL = "https://hooks.example/T000/secret-token"


@pytest.fixture
def editor(console: ConsoleServer) -> ConsoleSession:
    """Return a session of an editor."""
    session = ConsoleSession(console.url)
    session.login("editor", PASSWORD)
    return session


@pytest.fixture
def receiver(console: ConsoleServer) -> Iterator[Receiver]:
    """Return a local webhook that the console may reach."""
    alerts = console.console.alerts
    alerts._allowed = parse_networks(["127.0.0.1/32"])
    with running(Receiver()) as server:
        yield server
    alerts._allowed = ()


def add_channel(admin: ConsoleSession, name: str, url: str, **form: str) -> Any:
    """Send the form of a webhook."""
    fields = {"channel_name": name, "channel_kind": "webhook", "url": url, **form}
    return admin.post("/alerts", "add-channel", fields)


def test_a_rule_fires_is_shown_notified_silenced_and_deleted(
    admin: ConsoleSession, console: ConsoleServer, receiver: Receiver
) -> None:
    """The group billing is 40 records behind: its incident is on the page, and at the channel."""
    alerts, connection = console.console.alerts, console.console.clusters.get("local")
    assert "is added" in add_channel(admin, "hook", receiver.url).notice
    (channel,) = alerts.store.channels()
    tested = admin.post("/alerts", "test-channel", {"channel": channel.id})
    assert tested.notice == "A test notification is sent to hook."
    assert receiver.last["labels"] == {"reason": "test"}
    added = admin.post("/alerts", "add-rule", RULE | {"channels": channel.id})
    assert added.notice == "The rule lag of billing is added."
    console.console.sampler.sample(connection)
    alerts.wait()
    assert receiver.last["title"] == "[WARNING] local: lag of billing"
    assert "Group billing is 40 records behind (limit 5)." in admin.get("/alerts").text
    in_use = admin.post("/alerts", "delete-channel", {"channel": channel.id})
    assert "uses the channel" in in_use.alert
    (rule,) = alerts.store.rules()
    form = {"rule": rule.id, "minutes": 5, "comment": "works"}
    assert admin.post("/alerts", "add-silence", form).notice == "The silence begins."
    (silence,) = alerts.store.silences(0)
    assert silence.user == "admin"
    assert admin.post("/alerts", "delete-silence", {"silence": silence.id}).status == 200
    off = admin.post("/alerts", "switch-rule", {"rule": rule.id, "enabled": ""})
    assert "Switch on" in off.text
    assert alerts.store.incidents(is_open=True) == []
    assert admin.post("/alerts", "delete-rule", {"rule": rule.id}).alert == ""
    assert admin.post("/alerts", "delete-channel", {"channel": channel.id}).alert == ""
    audit = admin.get("/audit").text
    for action in ("alert-rule.create", "alert-channel.test", "alert-silence.create"):
        assert action in audit
    assert receiver.url not in audit


def test_a_secret_is_never_shown_again(admin: ConsoleSession, console: ConsoleServer) -> None:
    """Neither the page nor the API nor the audit log has the URL or the secret."""
    add_channel(admin, "team", SECRET_URL, secret="signing-secret")
    (channel,) = console.console.alerts.store.channels()
    texts = [admin.get(path).text for path in ("/alerts", "/audit", "/api/v1/alerts/channels")]
    assert "hooks.example" in texts[0]
    assert all("secret-token" not in text and "signing-secret" not in text for text in texts)
    admin.post("/alerts", "delete-channel", {"channel": channel.id})


def test_only_admins_have_channels(editor: ConsoleSession, console: ConsoleServer) -> None:
    """An editor neither adds a channel nor sees where it goes, but may add rules."""
    refused = add_channel(editor, "mine", "https://a.b")
    assert refused.status == 403
    assert console.console.alerts.store.channels() == []
    assert editor.request("GET", "/api/v1/alerts/channels").status == 403
    assert "Add a channel" not in editor.get("/alerts").text
    assert editor.post("/alerts", "add-rule", RULE).status == 200
    (rule,) = console.console.alerts.store.rules()
    viewer = ConsoleSession(console.url)
    viewer.login("viewer", PASSWORD)
    assert viewer.post("/alerts", "delete-rule", {"rule": rule.id}).status == 403
    assert "Delete" not in viewer.get("/alerts").text
    editor.post("/alerts", "delete-rule", {"rule": rule.id})


def test_a_local_address_is_refused_and_the_page_says_why(
    admin: ConsoleSession, console: ConsoleServer
) -> None:
    """A channel to the console itself, or to a cloud's metadata service, sends nothing."""
    for url in (console.url, "http://169.254.169.254/latest/meta-data", "http://[::1]:1"):
        add_channel(admin, "inside", url)
        (channel,) = console.console.alerts.store.channels()
        response = admin.post("/alerts", "test-channel", {"channel": channel.id})
        assert "allowed_networks" in response.alert
        admin.post("/alerts", "delete-channel", {"channel": channel.id})


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ("add-rule", RULE | {"name": ""}),
        ("add-rule", RULE | {"name": "x" * 81}),
        ("add-rule", RULE | {"kind": "weather"}),
        ("add-rule", RULE | {"threshold": "many"}),
        ("add-rule", RULE | {"threshold": "-1"}),
        ("add-rule", RULE | {"threshold": "nan"}),
        ("add-rule", RULE | {"for_s": "1e9"}),
        ("add-rule", RULE | {"for_s": "999999999"}),
        ("add-rule", RULE | {"repeat_s": "5"}),
        ("add-rule", RULE | {"targets": "("}),
        ("add-rule", RULE | {"cluster": "absent"}),
        ("add-rule", RULE | {"channels": "99"}),
        ("add-rule", RULE | {"channels": "x"}),
        ("add-rule", RULE | {"severity": "panic"}),
        ("change-rule", RULE | {"rule": "99", "revision": "0"}),
        ("change-rule", RULE | {"rule": "1"}),
        ("change-channel", {"channel": "99", "channel_name": "c", "channel_kind": "slack"}),
        ("switch-rule", {"rule": "99"}),
        ("delete-rule", {"rule": "x"}),
        ("add-silence", {"minutes": "0"}),
        ("add-silence", {"minutes": "5", "rule": "99"}),
        ("delete-silence", {"silence": "99"}),
        ("add-channel", {"channel_name": "c", "channel_kind": "slack", "url": "file:///etc/x"}),
        ("add-channel", {"channel_name": "c", "channel_kind": "fax", "url": "https://a.b"}),
        ("add-channel", {"channel_name": "c", "channel_kind": "slack"}),
        ("add-channel", {"channel_name": "c", "channel_kind": "mail", "host": "h"}),
        ("add-silence", {"minutes": "5", "silenced_cluster": "nowhere"}),
        ("add-silence", {"minutes": "5", "rule": "9" * 30}),
        ("add-rule", {**RULE, "channels": "²"}),
        ("delete-rule", {"rule": "9" * 30}),
        ("delete-channel", {"channel": "99"}),
        ("test-channel", {"channel": "99"}),
    ],
)
def test_wrong_input_is_refused_with_a_reason(
    admin: ConsoleSession, console: ConsoleServer, action: str, form: dict[str, str]
) -> None:
    """The page is shown again with the error, and nothing is stored."""
    response = admin.post("/alerts", action, form)
    assert 400 <= response.status < 500
    assert response.alert
    assert console.console.alerts.store.rules() == []
    assert console.console.alerts.store.channels() == []
    assert console.console.alerts.store.silences(0) == []


def test_a_taken_name_is_refused(admin: ConsoleSession, console: ConsoleServer) -> None:
    """Two users who add the same rule: the second one sees an error."""
    admin.post("/alerts", "add-rule", RULE)
    assert "in use" in admin.post("/alerts", "add-rule", RULE).alert
    (rule,) = console.console.alerts.store.rules()
    admin.post("/alerts", "delete-rule", {"rule": rule.id})


def test_rules_silences_and_incidents_through_the_api(
    admin: ConsoleSession, console: ConsoleServer
) -> None:
    """A script makes and deletes a rule; unknown fields are refused."""
    headers = {"content-type": "application/json", "x-csrf-token": admin.csrf()}

    def call(method: str, path: str, body: str = "") -> Any:
        return admin.request(method, f"/api/v1/alerts{path}", body, headers)

    rule = '{"rule": {"name": "disk", "kind": "disk-used", "threshold": 90}}'
    assert call("POST", "/rules", rule).json["action"] == "alert-rule.create"
    assert (
        call("POST", "/rules", '{"rule": {"name": "x", "kind": "lag", "url": "y"}}').status == 400
    )
    (stored,) = call("GET", "/rules").json["items"]
    assert stored["rule"]["threshold"] == 90
    lower = rule[:-1] + f', "revision": {stored["revision"]}}}'
    assert call("PUT", f"/rules/{stored['id']}", lower.replace("90", "80")).status == 200
    assert call("GET", "/rules").json["items"][0]["rule"]["threshold"] == 80
    assert call("PUT", f"/rules/{stored['id']}", lower).status == 409
    assert call("PUT", "/rules/99", rule).status == 400
    assert call("PATCH", f"/rules/{stored['id']}", '{"is_enabled": false}').status == 200
    assert call("POST", "/silences", '{"minutes": 1}').status == 200
    (silence,) = call("GET", "/silences").json["items"]
    assert call("DELETE", f"/silences/{silence['id']}").status == 200
    assert call("DELETE", f"/rules/{stored['id']}").status == 200
    assert call("GET", "/incidents?is_open=true").json["items"] == []


def test_a_rule_is_edited_and_two_users_do_not_overwrite_each_other(
    admin: ConsoleSession, editor: ConsoleSession, console: ConsoleServer
) -> None:
    """The form has the values of the rule; an outdated form and wrong input change nothing."""
    store = console.console.alerts.store
    editor.post("/alerts", "add-rule", RULE)
    (rule,) = store.rules()
    console.console.sampler.sample(console.console.clusters.get("local"))
    assert len(store.incidents(is_open=True)) == 1
    form = editor.get(f"/alerts?edit-rule={rule.id}").text
    assert 'value="lag of billing"' in form
    assert 'name="threshold" value="5"' in form
    known = {"rule": rule.id, "revision": rule.revision}
    changed = RULE | known | {"name": "late", "threshold": "1000000000", "for_s": "30"}
    assert editor.post("/alerts", "change-rule", changed).notice == "The rule late is changed."
    (after,) = store.rules()
    assert (after.id, after.rule.name, after.rule.threshold) == (rule.id, "late", 1e9)
    assert 'value="1000000000"' in editor.get(f"/alerts?edit-rule={rule.id}").text
    outdated = admin.post("/alerts", "change-rule", RULE | known)
    assert outdated.status == 409
    assert "another user" in outdated.alert
    known["revision"] = after.revision
    for wrong in ({"threshold": "-1"}, {"targets": "("}, {"channels": "99"}, {"name": ""}):
        assert admin.post("/alerts", "change-rule", RULE | known | wrong).alert
    assert store.rules() == [after]
    audit = admin.get("/audit").text
    assert "alert-rule.change" in audit
    assert "5 → 1e+09" in audit
    console.console.sampler.sample(console.console.clusters.get("local"))
    assert store.incidents(is_open=True) == []
    # A rule about something else ends its incidents at once.
    known["revision"] = after.revision
    admin.post("/alerts", "change-rule", RULE | known)
    console.console.sampler.sample(console.console.clusters.get("local"))
    assert len(store.incidents(is_open=True)) == 1
    (again,) = store.rules()
    other = RULE | {"rule": rule.id, "revision": again.revision, "kind": "disk-used"}
    admin.post("/alerts", "change-rule", other | {"threshold": "100"})
    assert store.incidents(is_open=True) == []
    admin.post("/alerts", "delete-rule", {"rule": rule.id})


def test_a_channel_is_edited_and_keeps_its_secrets(
    admin: ConsoleSession, editor: ConsoleSession, console: ConsoleServer
) -> None:
    """An empty URL or secret stays; the password of a mail server does not move to another one."""
    store = console.console.alerts.store
    add_channel(admin, "team", SECRET_URL, secret="signing-secret")
    (row,) = store.channels()
    form = {"channel": row.id, "revision": row.revision, "channel_name": "crew"}
    web = form | {"channel_kind": "webhook"}
    assert editor.post("/alerts", "change-channel", web).status == 403
    assert admin.post("/alerts", "change-channel", web).notice == "The channel crew is changed."
    changed = store.channel(row.id)
    assert (changed.name, changed.url, changed.secret) == ("crew", SECRET_URL, "signing-secret")
    assert admin.post("/alerts", "change-channel", web).status == 409
    mail = {
        **form,
        "revision": row.revision + 1,
        "channel_kind": "mail",
        "host": "mail.example",
        "mail_user": "u",
        "mail_password": "mail-password",
        "security": "tls",
        "sender": "a@b.c",
        "recipients": "d@e.f",
    }
    assert admin.post("/alerts", "change-channel", mail).alert == ""
    page = admin.get(f"/alerts?edit-channel={row.id}").text
    assert 'value="mail.example"' in page
    assert "mail-password" not in page
    mail |= {"revision": row.revision + 2, "mail_password": ""}
    moved = admin.post("/alerts", "change-channel", mail | {"host": "evil.example"})
    assert "Enter the password again" in moved.alert
    assert admin.post("/alerts", "change-channel", mail | {"sender": "x@b.c"}).alert == ""
    remaining = store.channel(row.id).mail
    assert remaining is not None
    assert (remaining.sender, remaining.password) == ("x@b.c", "mail-password")
    headers = {"content-type": "application/json", "x-csrf-token": admin.csrf()}
    body = json.dumps({"channel": {"name": "crew", "kind": "slack", "url": "https://a.b"}})
    path = f"/api/v1/alerts/channels/{row.id}"
    assert admin.request("PUT", path, body, headers).json["action"] == "alert-channel.change"
    assert store.channel(row.id).mail is None
    audit = admin.get("/audit").text
    assert "alert-channel.change" in audit
    assert not any(text in audit for text in ("secret-token", "signing-secret", "mail-password"))
    admin.post("/alerts", "delete-channel", {"channel": row.id})
