"""How a topology is laid out over tasks, stages and internal topics."""
