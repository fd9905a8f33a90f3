"""The op table: rows, one family a file, and composites written in rows."""
