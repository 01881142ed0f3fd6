"""The layout of a topology over tasks, and its internal topics; both engines use it."""
