"""Scripts that read the files of a broker."""
