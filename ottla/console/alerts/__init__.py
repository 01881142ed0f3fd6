"""Alerts: rules on samples, incidents, silences, and the channels that carry notifications."""
