"""Rules from the subject of a certificate to a user, by the examples of Kafka's documentation."""

import time

import pytest

from ottla.security.principal_rules import name_of, parse_rules

DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)
TESTED = ", ".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


@pytest.mark.parametrize(
    ("rules", "subject", "user"),
    [
        (DOCUMENTED, "CN=serviceuser,OU=ServiceUsers,O=Unknown,C=Unknown", "serviceuser"),
        (
            DOCUMENTED,
            "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
            "adminuser@admin",
        ),
        (TESTED, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (TESTED, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (TESTED, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (TESTED, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (TESTED, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"CN=Tkac\, Adam,OU=ITZ", r"Tkac\, Adam"),
    ],
)
def test_documented_examples(rules: str, subject: str, user: str) -> None:
    """The first rule that matches the whole subject decides."""
    assert name_of(parse_rules(rules), subject) == user


@pytest.mark.parametrize(
    ("rules", "count"),
    [
        ("", 0),
        ("DEFAULT", 1),
        ("RULE://", 1),
        ("RULE:/.*/L", 1),
        ("  RULE:   /     / ,  DEFAULT  ", 2),
        ("  RULE:([A-Z]*)/$1/U   ,RULE:([a-z]+)/$1/,   DEFAULT  ", 3),
        (",   , , ,      , , ,   ", 0),
        ("     ,  , RULE:   /  /U    ,,  ,DEFAULT, ,", 2),
        (r"RULE:\/\\\(\)\n\t/\/\/\//", 1),
        (r"RULE:\**\/+/*/L,RULE:\/*\**/**/", 2),
        ("RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/", 1),
        (r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,DEFAULT", 4),
    ],
)
def test_rules_are_separated_by_commas(rules: str, count: int) -> None:
    """A pattern may contain commas, and empty rules are ignored."""
    assert len(parse_rules(rules)) == count


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("default", "does not begin with a rule"),
        ("DEFAUL", "does not begin with a rule"),
        ("DEFAULT/L", "does not begin with a rule"),
        ("DEFAULT DEFAULT", "does not begin with a rule"),
        ("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "does not begin with a rule"),
        ("rule:^CN=(.*?),OU=ServiceUsers.*$/$1/", "does not begin with a rule"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U", "does not begin with a rule"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/L", "does not begin with a rule"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/LU", "does not begin with a rule"),
        ("RULE:CN=(/$1/", "is not a regular expression"),
        ("RULE:CN=(?!eve).*/$0/", "is not a regular expression"),
        ("RULE:CN=.*/$1/", "refers to a group"),
        ("RULE:CN=(.*)/a$/", "refers to nothing"),
        ("RULE:CN=(.*)/${x}/", "refers to nothing"),
    ],
)
def test_text_that_is_no_rule_is_refused(rules: str, reason: str) -> None:
    """The broker does not start, rather than refuse each client later."""
    with pytest.raises(ValueError, match=reason):
        parse_rules(rules)


@pytest.mark.parametrize(
    ("replacement", "user"),
    [
        ("$2-$1", "b-a"),
        ("$0", "a,b"),
        ("$12", "a2"),
        ("$1@$4", "a@$4"),
        (r"\$1\/", "$1/"),
        ("", ""),
    ],
)
def test_replacement_refers_to_groups(replacement: str, user: str) -> None:
    """A group that does not exist is taken literally, as in Kafka."""
    assert name_of(parse_rules(f"RULE:(.),(.)/{replacement}/"), "a,b") == user


def test_subject_that_no_rule_matches_has_no_user() -> None:
    """A pattern has to match the whole subject."""
    assert name_of(parse_rules("RULE:CN=a/x/"), "CN=ab") is None
    assert name_of((), "CN=a") is None
    assert name_of(parse_rules("DEFAULT"), "CN=a") == "CN=a"


@pytest.mark.parametrize("pattern", ["CN=(a+)+", "CN=(a|aa)+", "CN=(.*a)*"])
def test_any_rule_is_matched_in_linear_time(pattern: str) -> None:
    """The subject of a certificate cannot stop the event loop."""
    rules = parse_rules(f"RULE:{pattern}/$1/,DEFAULT")
    subject = "CN=" + "a" * 60 + "!"
    begin = time.thread_time()
    assert name_of(rules, subject) == subject
    assert time.thread_time() - begin < 0.1
