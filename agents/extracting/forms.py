"""The shapes a tweet comes in, as far as URLs are concerned, and how much of a broken one can be read.

v1.1 and v2 objects, pages of v2 and the minimal form share one struct: their fields do not collide, and what is
not named here (users, counts, media) is skipped by the decoder without becoming an object. Well-formed input is
decoded in one typed pass. What does not fit is read again piece by piece: a broken field costs that field, a
broken tweet costs that tweet, never its neighbours.
"""

import re
from collections.abc import Iterator
from types import UnionType
from typing import Any, Final, get_args, get_origin

import msgspec

# Any escape in a JSON string; one of half a surrogate pair is no character.
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


# How deep a broken value is taken apart; `data[0].retweeted_status.quoted_status.entities.urls[0].url` is 5 deep.
# Each level is decoded again, so without a bound the time would be quadratic in a message nested on purpose.
DEPTH_MAX: Final = 8

_ABSENT: Final = msgspec.Raw()
_NULL: Final = msgspec.Raw(b"null")
_NOTHING: Final = (_ABSENT, _NULL)


class Link(msgspec.Struct, gc=False):
    """One entry of `entities.urls` or `entities.media`: the t.co form, what it stands for, what is displayed."""

    url: str | None = None
    expanded_url: str | None = None
    display_url: str | None = None


class Entities(msgspec.Struct, gc=False):
    """What Twitter found in a text. The positions are not read: they count differently in v1.1 and v2."""

    urls: list[Link] | None = None
    media: list[Link] | None = None


class LongText(msgspec.Struct, gc=False):
    """The whole of a text that is cut in the tweet itself: `extended_tweet` of v1.1, `note_tweet` of v2."""

    full_text: str | None = None
    text: str | None = None
    entities: Entities | None = None


class Form(msgspec.Struct, gc=False):
    """One tweet of any form."""

    id: int | str | None = None
    id_str: str | None = None
    created_at: str | int | float | None = None
    text: str | None = None
    full_text: str | None = None
    entities: Entities | None = None
    extended_tweet: LongText | None = None
    note_tweet: LongText | None = None
    urls: list[str] | None = None
    retweeted_status: "Form | None" = None
    quoted_status: "Form | None" = None


class Includes(msgspec.Struct, gc=False):
    """Of what a v2 page includes, the tweets."""

    tweets: list[Form] | None = None


class Message(Form, gc=False):
    """One message: a tweet, or a page of v2 (whose `data` is a tweet or a list of them)."""

    data: Form | list[Form] | None = None
    includes: Includes | None = None
    errors: msgspec.Raw = _ABSENT
    meta: msgspec.Raw = _ABSENT

    def is_page(self) -> bool:
        """Whether it is a page: one without results has no `data`, but says why not."""
        if self.id is not None or self.id_str is not None:
            return False
        if self.data is not None or self.includes is not None:
            return True
        return self.errors not in _NOTHING or self.meta not in _NOTHING


class Piece(msgspec.Struct, gc=False):
    """One tweet of a message read piece by piece: `form` is None if it is none, `lost` names what was unreadable."""

    fragment: bytes
    form: Form | None
    lost: list[str]


class NotJSONError(ValueError):
    """A message is not JSON, or not an object. The text says what is wrong and where."""


decode: Final = msgspec.json.Decoder(Message).decode


def forms_in(message: Message) -> list[Form]:
    """List the tweets of a message, nested ones excluded: `data` first, then what the page includes."""
    if not message.is_page():
        return [message]
    data = message.data
    forms = list(data) if isinstance(data, list) else [data] if data is not None else []
    if message.includes is not None:
        forms.extend(message.includes.tweets or ())
    return forms


def pieces_in(message: bytes) -> Iterator[Piece]:
    """Read a message piece by piece. Raises `NotJSONError`, and RecursionError when it is nested too deeply."""
    raw = _repaired(message)
    try:
        top = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJSONError(str(error)) from error
    parts = {name: bytes(part) for name, part in top.items() if part != _NULL}
    if "id" in parts or "id_str" in parts or not parts.keys() & {"data", "includes", "errors", "meta"}:
        lost: list[str] = []
        yield Piece(message, _read(raw, Form, "", lost), lost)
        return
    if "data" in parts:
        yield from _pieces(parts["data"], "data", alone=True)
    if "includes" in parts:
        lost = []
        tweets = _fields(parts["includes"], "includes", lost).get("tweets", _NULL)
        if lost:
            yield Piece(parts["includes"], None, lost)
        elif tweets != _NULL:
            yield from _pieces(bytes(tweets), "includes.tweets", alone=False)


def _repaired(raw: bytes) -> bytes:
    """Put U+FFFD for bytes that are not UTF-8 and for escapes of half a surrogate pair: nothing can hold those."""
    raw = raw.decode("utf-8", "replace").encode()
    return _ESCAPES.sub(lambda escape: b"\\ufffd" if escape["half"] else escape[0], raw)


def _pieces(raw: bytes, path: str, *, alone: bool) -> Iterator[Piece]:
    """Read a list of tweets, or one that stands `alone`."""
    if alone and raw.startswith(b"{"):
        yield _piece(raw, path)
        return
    try:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        yield Piece(raw, None, [f"{path} (it is not a list of tweets)"])
        return
    for index, item in enumerate(items):
        yield _piece(bytes(item), f"{path}[{index}]")


def _piece(raw: bytes, path: str) -> Piece:
    lost: list[str] = []
    return Piece(raw, _read(raw, Form, path, lost), lost)


def _read(raw: bytes, kind: Any, path: str, lost: list[str]) -> Any:
    """Decode one value; where it does not fit its type, member by member. What cannot be read goes to `lost`."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        if path.count(".") >= DEPTH_MAX:
            lost.append(path)
            return None
    if isinstance(kind, UnionType):  # optional: the first alternative is the one with parts
        kind = get_args(kind)[0]
    if get_origin(kind) is list:
        return _read_list(raw, get_args(kind)[0], path, lost)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        parts = _fields(raw, path, lost)
        prefix = f"{path}." if path else ""
        return kind(
            **{
                field.name: _read(bytes(parts[field.name]), field.type, prefix + field.name, lost)
                for field in msgspec.structs.fields(kind)
                if field.name in parts
            }
        )
    lost.append(path)
    return None


def _read_list(raw: bytes, kind: Any, path: str, lost: list[str]) -> list[Any] | None:
    try:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        lost.append(path)
        return None
    values = [_read(bytes(item), kind, f"{path}[{index}]", lost) for index, item in enumerate(items)]
    return [value for value in values if value is not None]


def _fields(raw: bytes, path: str, lost: list[str]) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        lost.append(path)
        return {}
