"""Names that outlive a process: the app, its topics, tables and agents.

Renaming one of these orphans data (a topic's backlog, a table's state, a consumer group's offsets),
so a test pins the list, and a change of it is a decision page with a migration.
"""

from typing import Final

APP: Final = "spiderduck"

# Topics, in the order a tweet meets them. Public ones carry JSON, internal ones msgspec structs.
TWEETS: Final = "tweets"  # public, in
URL_REQUESTS: Final = "url-requests"  # key: registered domain of the URL asked for
FETCH_REQUESTS: Final = "fetch-requests"  # key: the same
DEFERRED: Final = "deferred"  # key: the same; requests that come back at their due time
PAGES: Final = "pages"  # key: the same
DOCUMENTS: Final = "documents"  # key: the same
COMPLETIONS: Final = "completions"  # key: the same
URL_COMPLETED: Final = "url-completed"  # public, out; key: tweet id
DEAD_LETTERS: Final = "dead-letters"  # public, out
DOMAIN_COMMANDS: Final = "domain-commands"  # public, in

TOPICS: Final = (
    TWEETS,
    URL_REQUESTS,
    FETCH_REQUESTS,
    DEFERRED,
    PAGES,
    DOCUMENTS,
    COMPLETIONS,
    URL_COMPLETED,
    DEAD_LETTERS,
    DOMAIN_COMMANDS,
)

# Keys of tweets read from a file: this, then FILE:LINE. Dead letters quote it.
LINE_KEY_PREFIX: Final = "line:"

# Tables, each owned by one stage.
URLS: Final = "urls"  # decide: what is known of a URL, and who waits for it
DOMAINS: Final = "domains"  # fetch: next slot, rate, failures
ROBOTS: Final = "robots"  # fetch: robots.txt by origin

TABLES: Final = (URLS, DOMAINS, ROBOTS)

# Agents. A stage may have more than one: each reads one topic.
EXTRACT: Final = "extract"
DECIDE: Final = "decide"
SETTLE: Final = "settle"
FETCH: Final = "fetch"
DEFER: Final = "defer"
PARSE: Final = "parse"
ARCHIVE: Final = "archive"
COMPLETE: Final = "complete"

AGENTS: Final = (EXTRACT, DECIDE, SETTLE, FETCH, DEFER, PARSE, ARCHIVE, COMPLETE)
