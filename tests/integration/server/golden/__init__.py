"""Data directories as each released version writes them, which later versions must open."""
