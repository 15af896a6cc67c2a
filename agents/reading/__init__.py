"""What a page says: pure functions over bytes, run in a process pool, the hot path of the topology.

`page.read` is the way in. It goes:

    bytes ─ media: what is it? ─┬─ html  ─ charset, labels ─ tags: parsed once, walked once
                                │     ├─ cards, jsonld: title, description, image, site, category, icon
                                │     ├─ authors, published, dates, months: declared, else printed (body)
                                │     ├─ language: declared, else recognised
                                │     ├─ canonical, refresh: where the page says it is, or is not
                                │     └─ walls: is it the page at all?
                                ├─ image ─ images: type and size from the header
                                └─ other ─ nothing but its kind

    rules: what the configuration says of single sites, before everything a page declares
    text: what every string passes before it may enter the metadata

Three laws hold for all of it: nothing raises on what the web sends; everything is bounded, in bytes, nodes and
characters, by constants named in each file; every text in the answer can be encoded as UTF-8.
"""
