"""The prose is plain English: words that we avoid are counted by package, and their limits only
fall.

The limits began at twice the highest rate of six packages whose prose we take as a model
(kafka-python, aiokafka, click, httpx, PySpark, hypothesis), measured with `tests/law/prose.py`.
Since then they follow the text: they are lowered to the rates that it reaches, and never raised.
`prose.toml` has a higher ceiling for each part that is not rewritten yet; a ceiling that is higher
than it needs to be fails, too.
"""

import functools
import tomllib

import pytest

from tests.law import prose, source

# Matches per 1 000 words; sentences and docstrings in percent.
LIMITS = {
    "tell": 0.0,
    "what": 0.12,
    "where": 0.09,
    "nobody": 0.0,
    "anew": 0.0,
    "stands": 0.0,
    "go on": 0.0,
    "passive": 0.0,
    "come of": 0.0,
    "there is none": 0.02,
    "those of": 0.24,
    "answer": 0.35,
    "meanwhile": 0.0,
    "long sentences": 7.0,
    "fragments": 1.1,
}
# A ceiling may exceed the figure by this much, so that a single word does not have to change it.
_SLACK = 0.35
_SLACK_PERCENT = 2.0
PACKAGES = sorted(path.name for path in source.PACKAGE.iterdir() if (path / "__init__.py").exists())
PAGES = "pages"
AREAS = [*(f"ottla/{name}" for name in PACKAGES), source.SCRIPTS, "tests", "bench", "demo", PAGES]
CEILINGS: dict[str, dict[str, float]] = tomllib.loads(
    (source.ROOT / "tests/law/prose.toml").read_text(encoding="utf-8")
)


@functools.cache
def figures(area: str) -> dict[str, float]:
    """Return the figures of a folder, or of the Markdown pages, decisions included."""
    if area != PAGES:
        return prose.of_python(source.texts(area)).figures()
    pages = [*source.ROOT.glob("*.md"), *(source.ROOT / "docs").rglob("*.md")]
    texts = {str(page): page.read_text(encoding="utf-8") for page in pages}
    return prose.of_pages(texts).figures()


@pytest.mark.parametrize("area", AREAS)
def test_prose_is_plain(area: str) -> None:
    """No figure of a part exceeds its limit or the remaining ceiling."""
    ceilings = CEILINGS.get(area, {})
    for name, figure in figures(area).items():
        limit = ceilings.get(name, LIMITS[name])
        remedy = (
            prose.PATTERNS[name][1] if name in prose.PATTERNS else "shorter, complete sentences"
        )
        assert figure <= limit + 0.005, f"{area}: {name} {figure:.2f} > {limit}; write: {remedy}"


def test_ceilings_only_fall() -> None:
    """A ceiling is needed, and close to the figure: lower it in prose.toml when the prose improves."""
    for area, ceilings in CEILINGS.items():
        actual = figures(area)
        for name, ceiling in ceilings.items():
            slack = _SLACK if name in prose.PATTERNS else _SLACK_PERCENT
            assert ceiling > LIMITS[name], f"{area}: {name}: remove the ceiling"
            assert ceiling <= actual[name] + slack, (
                f"{area}: {name}: lower it to {actual[name]:.2f}"
            )


def _area(item: source.Source) -> str:
    return "/".join(item.path.split("/")[:2]) if item.path.startswith("ottla/") else source.SCRIPTS


def test_errors_logs_and_help_use_none_of_the_avoided_words() -> None:
    """Texts that users see contain no pattern, except while their package has a ceiling for it."""
    offences = {
        f"{item.path}:{line}": f"{name}: {text[:80]!r}"
        for item in source.sources()
        for line, text in prose.messages(item.tree)
        for name, (pattern, _) in prose.PATTERNS.items()
        if name not in CEILINGS.get(_area(item), {}) and pattern.search(text)
    }
    assert not offences


def test_every_pattern_matches_the_old_wording() -> None:
    """One sentence of the old kind has every pattern in it; its plain form has no pattern."""
    old = (
        "What is told to nobody is begun anew. Where it is kept it stands for the answer. "
        "The rest goes on, is asked for, and what comes of it is mended. "
        "Meanwhile there is none of its own, and those of others are used."
    )
    plain = "The broker reports an error. If it is stored, the client retries and resumes."
    assert all(pattern.search(old) for pattern, _ in prose.PATTERNS.values())
    assert not any(pattern.search(plain) for pattern, _ in prose.PATTERNS.values())
