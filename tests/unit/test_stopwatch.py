import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.stopwatch import Stopwatch

WORK = "print('at work', flush=True)\nwhile True: pass"
SECONDS = 0.1


@pytest.fixture
def crowded() -> Iterator[None]:
    """Let this thread share one processor with a process that never rests."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(all_of_them)])
    process = subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE)  # noqa: S603 - our own program
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()
    os.sched_setaffinity(0, all_of_them)


def test_time_in_which_it_rests_counts() -> None:
    stopwatch = Stopwatch()
    time.sleep(SECONDS)
    assert stopwatch.seconds() == pytest.approx(SECONDS, rel=0.5)


@pytest.mark.usefixtures("crowded")
def test_time_in_which_others_had_the_processor_does_not_count() -> None:
    started, stopwatch = time.perf_counter(), Stopwatch()
    work_until = time.thread_time() + SECONDS
    while time.thread_time() < work_until:
        pass
    seconds, passed = stopwatch.seconds(), time.perf_counter() - started
    assert seconds < passed - SECONDS / 2
