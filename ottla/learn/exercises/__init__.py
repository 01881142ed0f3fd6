"""Exercises: a cluster with a fault or a wish, a goal, and a check on the cluster itself.

`exercise` is what one consists of, `replicas`, `readers` and `settings` have them by subject, and
`watching` shows one on a terminal until its goal is reached.
"""
