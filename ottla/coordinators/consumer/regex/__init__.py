"""Subscriptions by regular expression: RE2 patterns and their resolution to topics."""
