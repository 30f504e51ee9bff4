"""Whoever has not the key, or only something that was heard before, gets no answer."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.confd.directory import Directory
from coordinator.confd.envelope import LARGEST, Asked, Query, open_question
from coordinator.confd.replays import Replays
from coordinator.confd.service import Known, Service
from tests.support.confd import NOW, question, read, seal
from tests.support.published import published

KEY = b"key"


def service() -> Service:
    made = Service()
    made.known = Known(KEY, Directory(published()))
    return made


def sealed(message: str, salt: str = f"{int(NOW)}") -> bytes:
    sent = {"msg": message, "salt": salt, "hmac": seal(message, salt, KEY)}
    return b"plj0" + json.dumps(sent).encode()


def test_a_question_is_answered_once() -> None:
    asked, made = question(KEY, 3, salt="mine"), service()
    reply = made.reply(asked, NOW)
    assert reply is not None
    assert read(reply, KEY, salt="mine").answer == "alpha"
    assert made.reply(asked, NOW + 1) is None
    assert made.reply(question(KEY, 3, salt="another"), NOW + 1) is not None


def test_a_seal_in_other_letters_is_the_same_question() -> None:
    asked, made = question(KEY, 3), service()
    assert made.reply(asked, NOW) is not None
    envelope = json.loads(asked[4:])
    envelope["hmac"] = envelope["hmac"].upper()
    assert made.reply(b"plj0" + json.dumps(envelope).encode(), NOW) is None


@pytest.mark.parametrize(
    ("late", "is_answered"), [(300, True), (-300, True), (302, False), (-302, False)]
)
def test_clocks_may_differ_by_five_minutes(late: int, is_answered: bool) -> None:
    reply = service().reply(question(KEY, 3, now=NOW - late), NOW)
    assert (reply is not None) is is_answered


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"plj",
        b"plj0",
        b"plj1" + question(KEY, 3)[4:],
        question(b"other", 3),
        question(KEY, 3)[:-5],
        question(KEY, 3) + b" " * LARGEST,
        b"plj0" + b"[" * 50_000,
        b'plj0{"a":' + b"[" * 50_000,
        b'plj0{"msg":"\\ud800","salt":"1800000000","hmac":"\xc3\xa9"}',
        b"plj0\xff\xfe",
        sealed("[" * 20_000),
        sealed('{"protocol":1,"type":3,"rsalt":"x","query":' + "[" * 20_000 + "]" * 20_000 + "}"),
        sealed("{}"),
        sealed('{"protocol":1,"type":3}'),
        sealed('{"protocol":1,"type":"3","rsalt":"x"}'),
        sealed('{"protocol":1,"type":3,"rsalt":"x"}', salt="18e8"),
        sealed('{"protocol":1,"type":3,"rsalt":"x"}', salt="²"),
        sealed('{"protocol":1,"type":3,"rsalt":"x"}', salt="9" * 10_000),
    ],
    ids=range(19),
)
def test_what_is_no_question_gets_no_answer(datagram: bytes) -> None:
    assert service().reply(datagram, NOW) is None


@given(st.binary(max_size=200), st.integers(0, 200))
def test_whatever_comes_nothing_breaks(noise: bytes, at: int) -> None:
    whole = question(KEY, 3)
    assert open_question(b"plj0" + noise, KEY, NOW) is None
    changed = whole[:at] + noise + whole[at + len(noise) :]
    if open_question(changed, KEY, NOW) is not None:
        assert json.loads(changed[4:]) == json.loads(whole[4:])


def test_nobody_is_answered_before_a_key_is_known() -> None:
    assert Service().reply(question(b"", 3), NOW) is None


def test_no_question_is_new_twice_however_many_there_are() -> None:
    random, replays, new = Random(7), Replays(most=20), set()
    for _ in range(3000):
        now = 1000.0 + random.randrange(900)
        number = random.randrange(400)
        asked = Asked(Query(protocol=1, type=3, rsalt=""), 900 + number, b"%d" % number)
        if abs(asked.time - now) <= 300 and replays.is_new(asked, now):
            assert number not in new
            new.add(number)
    assert new


def test_who_asks_now_is_let_in_though_many_have_asked_before() -> None:
    replays = Replays(most=20)
    for number in range(500):
        asked = Asked(Query(protocol=1, type=3, rsalt=""), 1000 + number // 10, b"%d" % number)
        assert replays.is_new(asked, 1000.0 + number // 10)
