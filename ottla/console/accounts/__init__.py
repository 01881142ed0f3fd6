"""Accounts of the console: users, roles, sessions, the audit log, and rules that mask fields."""
