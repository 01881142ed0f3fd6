"""The lag of groups in time."""
