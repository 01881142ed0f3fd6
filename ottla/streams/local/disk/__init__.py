"""State of the local engine's tasks on disk: a database for each task, and their directory.

The writes since the last commit are in memory; a commit adds them to the database as one atomic
batch, together with the changelog offsets that they cover (KIP-892).
"""
