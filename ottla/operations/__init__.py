"""Operations on a cluster, each of them once.

An operation reads, plans, checks and executes, and returns a `Change`.

Verbs, scripts, pages and the REST API share them. Nothing here prints or parses a command line.
"""
