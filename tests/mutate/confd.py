"""Faults in what confd promises."""

from tests.mutate.fault import Fault

SIM, ENVELOPE = "tests/sim/test_confd.py", "tests/unit/confd/test_envelope.py"
ANSWERS = "tests/unit/confd/test_answers.py"

CONFD = (
    Fault(
        "confd tells a page twice", "pages go on after what was told",
        "coordinator/confd/shortening.py",
        "if key > after", "if key >= after",
        (ANSWERS,),
    ),
    Fault(
        "confd tells too much or nothing", "of many instances less is told of each",
        "coordinator/confd/service.py",
        "for form in forms(told.answer):", "for form in [told.answer]:",
        (ANSWERS,),
    ),
    Fault(
        "confd tells of no disks", "what was left out is missing, never empty",
        "coordinator/confd/shortening.py",
        "    return {name: value for name, value in told.items() if name not in _PARTS}",
        "    return told | dict.fromkeys(_PARTS, ())",
        (ANSWERS,),
    ),
    Fault(
        "confd answers twice", "a question that was heard by somebody gets no second answer",
        "coordinator/confd/replays.py",
        "asked.seal in self._seals", "False",
        (ENVELOPE,),
    ),
    Fault(
        "confd forgets too early", "what is forgotten is refused, and not answered again",
        "coordinator/confd/replays.py",
        "self._closed_until = self._forget_oldest()", "self._forget_oldest()",
        (ENVELOPE,),
    ),
    Fault(
        "confd takes every seal", "only who has the key is answered",
        "coordinator/confd/envelope.py",
        "if not hmac.compare_digest(envelope.hmac.lower().encode(), seal):", "if False:",
        (ENVELOPE,),
    ),
    Fault(
        "confd lets old questions in", "a question is good for five minutes",
        "coordinator/confd/envelope.py",
        "abs(now - time) > MOST_SKEW_S", "now < time - MOST_SKEW_S",
        (ENVELOPE,),
    ),
    Fault(
        "confd sends all that there is", "no datagram is larger than clients take",
        "coordinator/confd/service.py",
        "len(reply) <= LARGEST", "reply",
        (ANSWERS,),
    ),
    Fault(
        "confd is not told again", "a change is told within a second",
        "coordinator/master/confd.py",
        "return news.config is state.config and", "return",
        (SIM,),
    ),
    Fault(
        "confd goes on where it should not", "a node that is not to answer tells nothing",
        "coordinator/master/news.py",
        "return news if news is not None and self.is_for(news, node) else None", "return news",
        (SIM,),
    ),
    Fault(
        "confd keeps its key", "a node that leaves has no key of the cluster any more",
        "noded/handlers/identity.py",
        "                await each.withdraw()\n", "                pass\n",
        (SIM,),
    ),
)  # fmt: skip
