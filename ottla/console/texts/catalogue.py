"""The texts of the console in English and Chinese.

The English text is the key, so that a template can be read. `zh.toml` maps it to the translation; a
text that is missing there is shown in English, and a test lists it.
"""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

DEFAULT_LANGUAGE = "en"
# The languages by code, each with its own name for itself.
LANGUAGES = {"en": "English", "zh": "中文"}


class Language(NamedTuple):
    """A language, with its translations of the English texts."""

    code: str
    texts: Mapping[str, str]

    def say(self, text: str, **values: object) -> str:
        """Translate a text and insert values for its `{names}`."""
        translation = self.texts.get(text, text)
        return translation.format(**values) if values else translation


@functools.cache
def language(code: str) -> Language:
    """Return a language; English for an unknown code."""
    if code == DEFAULT_LANGUAGE or code not in LANGUAGES:
        return Language(DEFAULT_LANGUAGE, {})
    path = Path(__file__).with_name(f"{code}.toml")
    return Language(code, tomllib.loads(path.read_text("utf-8")))


def preferred(accept_language: str) -> str:
    """Return the code of the first language of an Accept-Language header that the console has."""
    for item in accept_language.split(","):
        code = item.partition(";")[0].strip().partition("-")[0].lower()
        if code in LANGUAGES:
            return code
    return DEFAULT_LANGUAGE
