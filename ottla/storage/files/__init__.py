"""The files of a log directory: their names, formats and scans."""
