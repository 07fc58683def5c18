"""Loop of a worker's rounds."""

import math
import time

import pytest

from shared.errors import FetchFailed
from shared.ingestion.job_queue import BatchResult, work_until


def failing() -> BatchResult:
    raise FetchFailed


def test_a_failed_last_claim_is_raised_although_the_time_has_come_meanwhile():
    end = time.monotonic() + 0.5

    def wait_for_more(_: float) -> bool:
        while time.monotonic() <= end:
            time.sleep(0.05)
        return True

    with pytest.raises(FetchFailed):
        work_until(failing, end, wait_for_more)


def test_a_failed_claim_before_another_round_is_logged(caplog: pytest.LogCaptureFixture):
    rounds = [failing, BatchResult]

    def work() -> BatchResult:
        return rounds.pop(0)()

    assert work_until(work, math.inf, lambda _: bool(rounds)) == (BatchResult(), True)
    assert "no job could be claimed: url_unreachable" in caplog.text
