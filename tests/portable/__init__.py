"""The portable mode: tests without the names that Linux has and macOS lacks.

`tests/portable/site` is first on PYTHONPATH of a child process and its descendants. Its
`sitecustomize` removes the names of `names.py` before any other module is imported.
"""
