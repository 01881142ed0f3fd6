"""The part of SQL that a check without Spark needs: tokens, quotes, brackets, and table names.

The final check is Spark's own parser (`ottla pipeline check --deep`, and every run).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.problems import Problems

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<number>\d[\w.]*)
      | (?P<open>[(\[{])
      | (?P<close>[)\]}])
      | (?P<unclosed>['"`]|/\*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}
# After these words, a bracket opens a part of the query, not the arguments of a function.
_KEYWORDS = (
    "select from where join on and or not in as exists by case when then else having all distinct "
    "union except intersect any some over using lateral like limit with"
)
# Words in the position of a table that are not tables.
_NO_TABLES = frozenset({"lateral", "values", "unnest"})


class Token(NamedTuple):
    """A word, string, number, bracket or sign, and its position."""

    kind: str
    text: str
    start: int

    @property
    def lower(self) -> str:
        """Return the text in lower case."""
        return self.text.lower()


class TableName(NamedTuple):
    """A table that a query reads, and the position of its name."""

    name: str
    start: int


def tokens(sql: str) -> Iterator[Token]:
    """Yield the tokens of a text, without whitespace and comments."""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        if kind != "skip":
            yield Token(kind, match.group(), match.start())


def check_shape(text: Text, subject: str, problems: Problems) -> bool:
    """Note unclosed quotes and brackets, and an empty text; return True if no problem was found."""
    stack: list[Token] = []
    count = 0
    for token in tokens(text.text):
        count += 1
        if token.kind == "unclosed":
            problems.error(text.at(token.start), f"{subject}: {token.text} is not closed.")
            return False
        if token.kind == "open":
            stack.append(token)
        elif token.kind == "close":
            if not stack or stack[-1].text != _PAIRS[token.text]:
                problems.error(text.at(token.start), f"{subject}: unmatched {token.text}.")
                return False
            stack.pop()
    if stack:
        position = text.at(stack[-1].start)
        problems.error(position, f"{subject}: {stack[-1].text} is not closed.")
    if not count:
        problems.error(text.position, f"{subject}: the text is empty.")
    return bool(count) and not stack


@dataclass
class _Level:
    """An open bracket: of a function's arguments, or of a query."""

    is_function: bool
    # True after a FROM: commas then separate tables, until the next clause.
    in_tables: bool = False


_END_OF_TABLES = (
    "where group having order limit window union except intersect select sort cluster distribute"
)


def tables(sql: str) -> list[TableName]:
    """Return the tables that a query names after FROM, JOIN and commas, except its own WITH names."""
    results: list[TableName] = []
    own = _own_names(sql)
    levels = [_Level(False)]
    sql_tokens = list(tokens(sql))
    for position, token in enumerate(sql_tokens):
        before = sql_tokens[position - 1] if position else None
        after = sql_tokens[position + 1] if position + 1 < len(sql_tokens) else None
        level = levels[-1]
        if token.kind == "open":
            levels.append(_Level(_opens_arguments(before, after)))
        elif token.kind == "close":
            levels = levels[:-1] or [_Level(False)]
        elif token.kind == "word" and not level.is_function:
            level.in_tables = _in_tables(level, token, before)
        name = _table_after(token, level, sql_tokens, position)
        if name is not None and name.name.lower() not in own:
            results.append(name)
    return results


def _opens_arguments(before: Token | None, after: Token | None) -> bool:
    is_name = before is not None and before.kind in ("word", "quoted")
    is_query = after is not None and after.lower in ("select", "with", "from", "values")
    return is_name and before is not None and before.lower not in _KEYWORDS.split() and not is_query


def _in_tables(level: _Level, token: Token, before: Token | None) -> bool:
    if token.lower in ("from", "join"):
        return before is None or before.lower != "distinct" or token.lower == "join"
    return level.in_tables and token.lower not in _END_OF_TABLES.split()


def _table_after(
    token: Token, level: _Level, sql_tokens: list[Token], position: int
) -> TableName | None:
    """Return the table after a FROM, a JOIN or a comma between tables."""
    leads = token.lower in ("from", "join") or (token.text == "," and level.in_tables)
    if not leads or level.is_function or not level.in_tables:
        return None
    following = sql_tokens[position + 1 : position + 4]
    if (
        not following
        or following[0].kind not in ("word", "quoted")
        or following[0].lower in _NO_TABLES
    ):
        return None
    # range(10), or a name of another catalog: not checked here.
    if len(following) > 1 and following[1].text in ("(", "."):
        return None
    return TableName(following[0].text.strip("`"), following[0].start)


def _own_names(sql: str) -> set[str]:
    """Return the names that WITH defines in the query itself."""
    sql_tokens = list(tokens(sql))
    if not any(token.lower == "with" for token in sql_tokens):
        return set()
    return {
        sql_tokens[n].lower.strip("`")
        for n in range(len(sql_tokens) - 2)
        if sql_tokens[n].kind in ("word", "quoted")
        and sql_tokens[n + 1].lower == "as"
        and sql_tokens[n + 2].text == "("
    }
