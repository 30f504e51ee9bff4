"""What one address asks does not cost the others."""

from http import HTTPStatus
from itertools import count

import pytest

from coordinator.rapi.failures import Refusal
from coordinator.rapi.limits import GUESSES, JOBS, MOST_SOURCES, Limits

OTHERS = (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in count())


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_whoever_asks_too_much_waits_and_nobody_else_does() -> None:
    clock = Clock()
    limits = Limits(10, clock)
    for _ in range(20):
        limits.check("192.0.2.1")
    with pytest.raises(Refusal) as refused:
        limits.check("192.0.2.1")
    assert refused.value.status is HTTPStatus.TOO_MANY_REQUESTS
    assert refused.value.headers == {"Retry-After": "1"}
    limits.check("192.0.2.2")
    clock.now_s = 0.1
    limits.check("192.0.2.1")


def test_whoever_guesses_passwords_has_to_wait() -> None:
    clock = Clock()
    limits = Limits(0, clock)
    for _ in range(int(GUESSES)):
        limits.check("192.0.2.1")
        limits.failed("192.0.2.1")
    with pytest.raises(Refusal, match="wrong passwords"):
        limits.check("192.0.2.1")
    limits.check("192.0.2.2")
    clock.now_s = 2
    limits.check("192.0.2.1")


def test_nobody_fills_the_queue_without_having_logged_in() -> None:
    limits = Limits(0, Clock())
    for _ in range(int(JOBS)):
        limits.check_job("192.0.2.1")
    with pytest.raises(Refusal, match="jobs of nobody"):
        limits.check_job("192.0.2.1")
    limits.check_job("192.0.2.2")
    limits.check("192.0.2.1")


def test_without_a_limit_nobody_waits() -> None:
    limits = Limits(0, Clock())
    for _ in range(1000):
        limits.check("192.0.2.1")


def test_who_goes_on_guessing_is_not_forgotten_for_all_who_come_meanwhile() -> None:
    limits = Limits(0, Clock())
    for _ in range(int(GUESSES)):
        limits.failed("192.0.2.1")
        for _ in range(MOST_SOURCES // int(GUESSES) + 1):
            limits.failed(next(OTHERS))
    with pytest.raises(Refusal, match="wrong passwords"):
        limits.check("192.0.2.1")
