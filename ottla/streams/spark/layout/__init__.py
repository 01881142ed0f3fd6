"""The layout of a topology: tasks, stages and internal topics."""
