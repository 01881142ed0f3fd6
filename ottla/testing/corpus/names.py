"""Names of topics, groups and transactions that addresses, pages and commands treat wrongly."""

from collections.abc import Mapping

TOPICS: Mapping[str, str] = {
    "new": "the word of the form that creates a topic",
    "search": "the word of a part of other pages",
    "a.b-c_d": "every kind of character that a name may have",
    "x" * 249: "the longest name",
}
"""Names of topics, with the reason why each is awkward."""

GROUPS: Mapping[str, str] = {
    "team/app": "a slash, which separates parts of addresses",
    "100%": "a percent sign, which begins an escape in addresses",
    "team/app 1%ü": "slash, blank, percent sign and a letter beyond ASCII",
    "…": "a character of three bytes",
    " leading and trailing ": "blanks at the ends",
    'it\'s "quoted"': "quotes, which end attributes of HTML and texts of SQL",
    "<script>alert(1)</script>": "markup, which a page must show as text",
    "🧪": "a character beyond the basic plane",
    "a?b#c&d=e": "the characters that divide an address",
    "..": "a relative path",
}
"""Ids of groups, with the reason why each is awkward."""

TRANSACTIONAL_IDS: Mapping[str, str] = {
    "flink/1": "a slash, as Flink's ids have",
    "app-0_0 %": "blank and percent sign",
    "<script>": "markup",
    "🧪": "a character beyond the basic plane",
}
"""Transactional ids, with the reason why each is awkward."""

LONG_METADATA = "m" * 30_000
"""Metadata of a committed offset, of which brokers allow 4096 bytes by default."""
