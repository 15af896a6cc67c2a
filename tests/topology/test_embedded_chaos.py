"""Two stages on the embedded log, killed at random moments: everything that was fed comes out, and not much twice."""

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from topology.embedded_log import Log, Partition

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 2000
KILLS = 8


def test_everything_comes_out_whenever_the_worker_is_killed(tmp_path):
    moments = random.Random(11)
    for number in range(KILLS + 1):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.chaotic_worker", str(tmp_path), str(MESSAGES), str(number)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert worker.stdout.readline() == "at work\n"
            if number < KILLS:
                time.sleep(moments.uniform(0.0, 0.25))
            else:
                assert worker.stdout.readline() == "done\n"
        finally:
            worker.kill()
            worker.wait()
            worker.stdout.close()
    log = Log(tmp_path / "log", memory_bytes_max=1, kept_records_max=10**6)
    came = Counter(
        record.value
        for partition in range(2)
        for record in log.read(Partition("out", partition), 0, records_max=10**6, bytes_max=1 << 30)
    )
    log.close()
    assert set(came) == {b"%d" % number for number in range(MESSAGES)}
    # Repeated is what was in flight at a kill: at each of the two stages no more than its bound, and half a second's
    # commits; were nothing committed, everything would come out once per start.
    assert sum(came.values()) < MESSAGES * 4
