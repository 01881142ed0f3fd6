"""Object names of JMX, and the patterns that select them."""

import time

import pytest

from ottla.metrics.beans import NONE, Beans, Properties
from ottla.metrics.object_names import ObjectNamePattern, object_name

_log = Beans("kafka.log", "Log").gauge("Size", "S.")
_sockets = Beans("kafka.server", "socket-server-metrics").attribute("connection-count", "C.")


def test_names_have_kafkas_order() -> None:
    """Type and name come first; metrics of one bean share its name; special values are quoted."""
    assert str(object_name(_log, Properties(topic="a", partition=0))) == (
        "kafka.log:type=Log,name=Size,topic=a,partition=0"
    )
    assert str(object_name(_sockets, Properties(listener="X"))) == (
        "kafka.server:type=socket-server-metrics,listener=X"
    )
    assert str(object_name(_log, Properties(a='x,"*?\n\\'))) == (
        'kafka.log:type=Log,name=Size,a="x,\\"\\*\\?\\n\\\\"'
    )


@pytest.mark.parametrize(
    ("pattern", "is_match"),
    [
        ("*:*", True),
        ("kafka.*:*", True),
        ("kafka.server:*", False),
        ("kafka.log:type=Log,name=Size,topic=a,partition=0", True),
        ("kafka.log:partition=0,topic=a,name=Size,type=Log", True),
        ("kafka.log:type=Log,name=Size", False),
        ("kafka.log:type=Log,name=Size,*", True),
        ("kafka.log:type=Log,*,name=S?z?", True),
        ("kafka.log:type=L*,name=*,topic=*,partition=*", True),
        ("kafka.log:type=Log,name=Size,topic=*,partition=1", False),
        ("kafka.log:type=Log,name=Size,topic=[a],partition=0", False),
        ("kafka.???:type=Log,*", True),
    ],
)
def test_patterns_match_as_in_jmx(pattern: str, is_match: bool) -> None:
    """The order of properties does not matter; without `*` no further property is allowed."""
    name = object_name(_log, Properties(topic="a", partition=0))
    assert (name in ObjectNamePattern(pattern)) is is_match
    assert ObjectNamePattern(pattern).may_contain(_log) or not is_match


def test_name_of_a_bean_selects_exactly_that_bean() -> None:
    """Wildcards inside of quotes are characters if they are escaped, as in the name itself."""
    name = object_name(_log, Properties(client='a*,="?[x]'))
    other = object_name(_log, Properties(client='ab,="?[x]'))
    assert ObjectNamePattern(str(name)).is_exact
    assert name in ObjectNamePattern(str(name))
    assert other not in ObjectNamePattern(str(name))
    assert not ObjectNamePattern("kafka.log:type=Lo?").is_exact


def test_beans_that_cannot_match_are_skipped() -> None:
    """The type and name of a bean suffice to skip all of its rows."""
    assert not ObjectNamePattern("kafka.log:type=Log,name=LogEndOffset,*").may_contain(_log)
    assert not ObjectNamePattern("kafka.log:type=Cleaner,*").may_contain(_log)
    assert ObjectNamePattern("kafka.server:type=socket-*,*").may_contain(_sockets)


@pytest.mark.parametrize("text", ["", "kafka.log", "kafka.log:", "a:b", "a:b=c,,", 'a:b="c'])
def test_invalid_patterns_are_refused(text: str) -> None:
    """The message has the text."""
    with pytest.raises(ValueError, match="invalid object name"):
        ObjectNamePattern(text)


def test_many_wildcards_take_little_time() -> None:
    """A pattern is chosen by a client and must not stop the event loop."""
    name = object_name(_log, Properties(topic="a" * 249))
    started = time.thread_time()
    assert name not in ObjectNamePattern(f"kafka.log:type=Log,name=Size,topic={'*a' * 100}b")
    assert NONE.pairs == ()
    assert time.thread_time() - started < 0.5
