"""Where a page sends its reader: `<meta http-equiv=refresh>` and the Refresh header.

The steps are those of the HTML Standard, "shared declarative refresh steps"
(https://html.spec.whatwg.org/#shared-declarative-refresh-steps). Both spellings share them.
"""

import re
from typing import Final

from agents.reading.text import web_url

VALUE_CHARS_MAX: Final = 4096
SECONDS_MAX: Final = 10**9  # longer than anyone waits; keeps a hostile number small

_TIME: Final = re.compile(r"[\t\n\f\r ]*(\d*)([\d.]*)", re.ASCII)
_URL: Final = re.compile(
    r"""(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(?:(["'])(.*?)(?:\1|\Z)|(.*))""", re.IGNORECASE | re.DOTALL
)


def parse_refresh(value: str, base: str) -> tuple[float, str] | None:
    """Seconds to wait and the absolute http(s) target, `base` itself when none is named; None for no refresh."""
    value = value[:VALUE_CHARS_MAX]
    time = _TIME.match(value)
    if time is None or not (time[1] or time[2].startswith(".")):
        return None
    seconds = float(min(int(time[1] or 0), SECONDS_MAX))
    rest = value[time.end() :]
    if not rest:
        return seconds, base
    if rest[0] not in ";,\t\n\f\r ":
        return None
    rest = rest.lstrip("\t\n\f\r ")
    rest = rest[1:].lstrip("\t\n\f\r ") if rest[:1] in (";", ",") else rest
    if not rest:
        return seconds, base
    named = _URL.match(rest)
    address = (named[2] or named[3] or "").strip() if named else ""
    target = web_url(address, base) if address else base
    return (seconds, target) if target else None
