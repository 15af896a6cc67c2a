"""A parser process whose pages do what they want: the first label of a page's URL says what."""

import os
import sys
import time
from urllib.parse import urlsplit

from agents.clients import parser_process
from agents.clients.parser_process import Job, Result, answer_to
from agents.reading.rules import SiteRules

FRAME = parser_process.FRAME


def wild(job: Job, rules: SiteRules | None) -> Result:
    """Read a page, or misbehave as it says."""
    match (urlsplit(job.url).hostname or "").partition(".")[0]:
        case "hang":
            time.sleep(3600)
        case "slow":
            time.sleep(0.1)
        case "die":
            os._exit(1)
        case "hog":
            return Result(error=str(len(bytearray(3 << 30))))
        case "babble":  # an answer that is none
            os.write(1, (3).to_bytes(FRAME, "big") + b"\xc1\xc1\xc1")
        case "lie":  # an answer of the wrong shape
            os.write(1, (2).to_bytes(FRAME, "big") + b"\x91\x01")
        case "whoami":
            time.sleep(0.01)
            return Result(error=str(os.getpid()))
    try:
        return answer_to(job, rules)
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    parser_process.answer_to = wild
    parser_process.main()
