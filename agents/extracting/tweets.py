"""tweets: bytes of one message (or one line of a file) -> the tweets in it, each with every URL in it.

Accepted: v1.1 objects, v2 objects (`{"data": {...}}` or bare), v2 pages (`data` and `includes.tweets`), and the
minimal `{"id", "text", "created_at"}`, which may list `urls` instead of a text; topology/schemas/tweets.schema.json
says it formally. A retweeted or quoted tweet inside a v1.1 object is a tweet of its own.

Which URLs are in a tweet:

1. `entities.urls`: the `expanded_url` was shared, the t.co form is an alias. `unwound_url` is Twitter's own
   resolution, not in the tweet, and not taken for granted.
2. `entities.media`: the page of a photo or a video. Its t.co form stands in the text like any other; v2 lists it
   among the URLs. (`extended_entities` repeats it, once for each photo.)
3. The text, by Twitter's own rules (agents/extracting/text.py), where an entity does not cover it. A t.co link
   with an ellipsis at its heels is what is left of one in a cut retweet, and is no URL.

The same URL twice is one, its spellings merged. What cannot be parsed stays: it is announced as invalid.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from agents.extracting import forms
from agents.extracting.forms import Entities, Form, Link
from agents.extracting.text import Found, urls_in_text
from topology import urls

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024  # a full page of v2 has 0.4 MB; Kafka brokers take 1 MB by default
URLS_PER_TWEET_MAX: Final = 1000  # the longest post X takes, 25,000 characters, has room for 1,000 t.co links
ID_CHARS_MAX: Final = 64  # Twitter's have 19 digits
CREATED_AT_CHARS_MAX: Final = 64
PROBLEMS_PER_MESSAGE_MAX: Final = 1000
REASONS_MAX: Final = 10  # members named in one reason

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ELLIPSIS: Final = "\u2026"


class SharedUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL as it was shared, its other spellings in the tweet (the t.co form), and what parsing made of it."""

    url: str
    aliases: tuple[str, ...]
    address: urls.Address | urls.Refusal


class Tweet(msgspec.Struct, frozen=True, gc=False):
    """A tweet, as far as it matters here. `created_at` is as it came: v1.1 and v2 write dates differently."""

    id: str
    created_at: str | None
    urls: tuple[SharedUrl, ...]


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A message, or a part of one, that could not be read: verbatim, with the reason."""

    reason: str
    fragment: bytes


class Read(msgspec.Struct, frozen=True, gc=False):
    """What a message held: its tweets, each once by id, and what of it could not be read."""

    tweets: tuple[Tweet, ...] = ()
    problems: tuple[Unreadable, ...] = ()


def read_tweets(raw: bytes) -> Read:
    """Read one message; never raises, whatever the bytes. What is good in it is read, what is not is reported."""
    if len(raw) > MESSAGE_BYTES_MAX:
        return _unreadable(f"It has {len(raw)} bytes; the limit is {MESSAGE_BYTES_MAX}.", raw)
    body = raw.removeprefix(_BYTE_ORDER_MARK)
    if not body.strip():
        return _unreadable("It is empty.", raw)
    try:
        return _read_well_formed(body) or _read_piecewise(body)
    except forms.NotJSONError as error:
        return _unreadable(f"It is not a JSON object in UTF-8: {error}.", raw)
    except RecursionError:
        return _unreadable("It is nested too deeply.", raw)


def _read_well_formed(body: bytes) -> Read | None:
    """Read a message in one pass; None if anything about it is wrong."""
    try:
        message = forms.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    tweets: dict[str, Tweet] = {}
    for form in _with_nested(forms.forms_in(message)):
        if _complaint(form) or _add(form, tweets):
            return None
    return Read(tuple(tweets.values()))


def _read_piecewise(body: bytes) -> Read:
    """Read what can be read of a message and report the rest, each with its own piece of the message."""
    tweets: dict[str, Tweet] = {}
    problems: list[Unreadable] = []
    for piece in forms.pieces_in(body):
        complaints = [_loss(piece.lost)] if piece.lost else []
        for form in _with_nested([piece.form] if piece.form else []):
            complaint = _complaint(form) or _add(form, tweets)
            complaints += [complaint] if complaint else []
        if complaints and len(problems) < PROBLEMS_PER_MESSAGE_MAX:
            problems.append(Unreadable(" ".join(complaints[:REASONS_MAX]), piece.fragment))
        elif complaints:  # a page of nothing else would be a flood of letters: one holds it all
            reason = f"More than {PROBLEMS_PER_MESSAGE_MAX} parts of it could not be read; it is kept as a whole."
            problems[-1] = Unreadable(reason, body)
    return Read(tuple(tweets.values()), tuple(problems))


def _loss(lost: list[str]) -> str:
    """Say which members of a message could not be read."""
    more = f" and {len(lost) - REASONS_MAX} more" if len(lost) > REASONS_MAX else ""
    return f"This could not be read: {', '.join(lost[:REASONS_MAX]) or 'the whole'}{more}."


def _unreadable(reason: str, raw: bytes) -> Read:
    return Read(problems=(Unreadable(reason, raw),))


def _with_nested(outer: Iterable[Form]) -> Iterator[Form]:
    """Walk tweets and those inside them. The decoder has bounded the depth."""
    for form in outer:
        inside: list[Form | None] = [form]
        while inside:
            inner = inside.pop()
            if inner is not None:
                yield inner
                inside += (inner.quoted_status, inner.retweeted_status)


def _complaint(form: Form) -> str | None:
    """What keeps a form from being a tweet."""
    if _id_of(form) is None:
        return f"It has no id: a tweet needs `id` or `id_str` (up to {ID_CHARS_MAX} characters), a page needs `data`."
    if (
        form.text is None
        and form.entities is None
        and form.urls is None
        and form.full_text is None
        and form.extended_tweet is None
        and form.note_tweet is None
    ):
        return f"Tweet {_id_of(form)} has no text, no entities and no urls: is it something other than a tweet?"
    return None


def _id_of(form: Form) -> str | None:
    """Return the id as a string. `id_str` comes first: JavaScript rounds the number."""
    for given in (form.id_str, form.id):
        if isinstance(given, int):
            if 0 <= given < 10**ID_CHARS_MAX:
                return str(given)
        elif given and (text := given.strip()) and len(text) <= ID_CHARS_MAX:
            return text
    return None


def _add(form: Form, tweets: dict[str, Tweet]) -> str | None:
    """Add a tweet that is not there yet; say so if it has more URLs than are read."""
    tweet_id = _id_of(form)
    if tweet_id is None or tweet_id in tweets:
        return None
    collected = _Collected()
    _collect(form, collected)
    tweets[tweet_id] = Tweet(tweet_id, _created_at(form), collected.shared())
    if collected.full:
        return f"Tweet {tweet_id} has more than {URLS_PER_TWEET_MAX} URLs; the rest was left out."
    return None


def _created_at(form: Form) -> str | None:
    text = None if form.created_at is None else str(form.created_at)
    return text if text and len(text) <= CREATED_AT_CHARS_MAX else None


def _collect(form: Form, collected: "_Collected") -> None:
    """Collect the URLs of a form: from the long text if it has one, for then its own text and entities are cut."""
    whole = form.extended_tweet or form.note_tweet or form
    for url in form.urls or ():
        collected.add(url)
    _collect_entities(whole.entities or form.entities, collected)
    text = whole.full_text or whole.text or form.full_text or form.text
    if text and "." in text:
        _collect_text(text, collected)


def _collect_entities(entities: Entities | None, collected: "_Collected") -> None:
    if entities is None:
        return
    for links in (entities.urls, entities.media):
        for link in links or ():
            _collect_link(link, collected)


def _collect_link(link: Link, collected: "_Collected") -> None:
    shared = link.expanded_url or link.url
    if shared:
        collected.add(shared, link.url)
        if link.display_url:  # some archives put it in the place of the t.co form
            collected.covered.add(link.display_url.rstrip(_ELLIPSIS))


def _collect_text(text: str, collected: "_Collected") -> None:
    for found in urls_in_text(text):
        if found.url in collected.covered or _is_cut(text, found):
            continue
        collected.add_found(found)


def _is_cut(text: str, found: Found) -> bool:
    """Whether a link Twitter wrote lost its end where Twitter cut the text."""
    return text.startswith(_ELLIPSIS, found.end) and found.url.lower().startswith(("https://t.co", "http://t.co"))


class _Collected:
    """The URLs of one tweet so far, each once by what would be fetched."""

    def __init__(self) -> None:
        self.covered: set[str] = set()  # spellings a text need not be asked about again
        self.full = False
        self._addresses: dict[str, urls.Address | urls.Refusal] = {}
        self._spellings: dict[str, dict[str, None]] = {}  # key -> spellings, the shared one first

    def add(self, url: str, alias: str | None = None) -> None:
        """Add a URL, or its spelling if it is there already."""
        address = urls.parse(url)
        key = address.href if isinstance(address, urls.Address) else url
        self._put(key, address, url, alias)

    def add_found(self, found: Found) -> None:
        """Add a URL of the text. One without a scheme may be known under either."""
        url = found.with_scheme.replace("&amp;", "&")  # the API escapes texts for HTML, URLs included
        address = urls.parse(url)
        key = address.href if isinstance(address, urls.Address) else url
        secure = f"https{key.removeprefix('http')}"
        self._put(secure if found.is_bare and secure in self._spellings else key, address, url, None)

    def _put(self, key: str, address: urls.Address | urls.Refusal, url: str, alias: str | None) -> None:
        spellings = self._spellings.get(key)
        if spellings is None:
            if len(self._spellings) >= URLS_PER_TWEET_MAX:
                self.full = True
                return
            spellings = self._spellings[key] = {}
            self._addresses[key] = address
        for spelling in (url, alias):
            if spelling:
                spellings[spelling] = None
                self.covered.add(spelling)

    def shared(self) -> tuple[SharedUrl, ...]:
        """List them in the order they were met."""
        return tuple(
            SharedUrl(url, tuple(aliases), self._addresses[key]) for key, (url, *aliases) in self._spellings.items()
        )
