"""The text format of Prometheus, parsed strictly."""

import re

_SAMPLE = re.compile(
    r'([a-z_:]+)(?:\{((?:[a-zA-Z_]+="(?:[^"\\]|\\.)*",?)*)\})? (NaN|[+-]?Inf|[-+.e0-9]+)'
)
_LABEL = re.compile(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parse(text: str) -> Samples:
    """Parse the format strictly: each family once, with its header first, and each sample once."""
    result: Samples = {}
    heads: set[str] = set()
    family = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in heads, f"{family} comes twice"
            heads.add(family)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family
            assert line.split()[3] in ("counter", "gauge", "summary", "histogram", "untyped")
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert name.startswith(family)
            key = name, frozenset(_LABEL.findall(labels or ""))
            assert key not in result, line
            result[key] = float(value)
    assert text.endswith("\n")
    return result
