"""Offsets of groups: positions as users type them, plans of resets, their execution and undo."""
