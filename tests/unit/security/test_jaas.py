"""Login modules in the notation of Java's JAAS."""

import pytest

from ottla.security.jaas import LoginModule, parse_module


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('a.PlainLoginModule required user_ann="secret";', {"user_ann": "secret"}),
        ("PlainLoginModule required;", {}),
        (" a.B requisite x=1 user_b='it\"s' ; ", {"x": "1", "user_b": 'it"s'}),
        ('a.B required user_a.b="q\\"c\\\\d;="\n  y="";', {"user_a.b": 'q"c\\d;=', "y": ""}),
    ],
)
def test_options_are_read(text: str, options: dict[str, str]) -> None:
    """Values may have quotation marks, which are escaped."""
    assert parse_module(text) == LoginModule(text.split()[0].rstrip(";"), options)


@pytest.mark.parametrize(
    "text", ["", "secret", 'a.B required user_ann="secret"', 'a.B user_ann="s";', "a.B required x;"]
)
def test_other_text_is_an_error_with_an_example(text: str) -> None:
    """The sentence shows how to write a module."""
    with pytest.raises(ValueError, match="PlainLoginModule required"):
        parse_module(text)
