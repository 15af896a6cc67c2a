"""From a page to WARC records in object storage, and back.

In the order a page meets them: `http_block` (the HTTP message as it was), `records` (WARC records as gzip
members), `segments` (the file they go to), `spool` (the folder of files not yet put, and what a crash leaves
in it), `archive` (when a page is safe), `reading` (a page by its placement).
"""
