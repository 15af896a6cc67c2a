"""State that outlives a process, one file per table: its shape and its transitions, pure; `store` reads and writes.

`urls` belongs to decide; `domains` and `robots` belong to fetch. A table's partition has one owner at a time.
"""
