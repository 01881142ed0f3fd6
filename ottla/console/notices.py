"""Sentences that wait for the next page of a session: the result of a change, after the redirect."""

from collections import OrderedDict
from threading import Lock

_MAX_SESSIONS = 1000


class Notices:
    """At most one sentence per session; any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sentences: OrderedDict[str, str] = OrderedDict()

    def leave(self, session: str, sentence: str) -> None:
        """Keep a sentence for the session's next page."""
        with self._lock:
            self._sentences[session] = sentence
            while len(self._sentences) > _MAX_SESSIONS:
                self._sentences.popitem(last=False)

    def take(self, session: str) -> str:
        """Return the sentence and forget it; empty if none is stored."""
        with self._lock:
            return self._sentences.pop(session, "")
