"""Topics to files and files to topics, in this process: CSV, JSON lines and Parquet.

`ottla topic export` and `ottla topic load` use it. Rows are read and written here, records by the
columnar reader and sender of `ottla.client`. Needs the extra `ottla[arrow]`.
"""
