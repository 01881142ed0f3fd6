"""The command `ottla learn`; the lessons are in `ottla.testing.learn`, which runs the clusters."""
