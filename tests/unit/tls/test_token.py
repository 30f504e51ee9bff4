import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.tls.keys import make_temporary
from common.tls.token import JoinToken, fingerprint_of, make_token, read_token

TOKENS = st.builds(
    JoinToken, st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32)
)


@given(TOKENS)
def test_a_token_is_one_word_and_reads_back(token: JoinToken) -> None:
    assert read_token(f"  {token}\n") == token
    assert len(str(token).split()) == 1
    assert not str(token).startswith("-")


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="no join token"):
        read_token(text)


@given(TOKENS, TOKENS)
def test_a_proof_needs_the_secret_the_call_and_the_arguments(
    mine: JoinToken, other: JoinToken
) -> None:
    proof = mine.prove("join.request", {"node": "alpha"})
    mine.check_proof(proof, "join.request", {"node": "alpha"})
    for call, node in (("join.accept", "alpha"), ("join.request", "beta")):
        with pytest.raises(InvalidRequest, match="not this node's"):
            mine.check_proof(proof, call, {"node": node})
    if other.secret != mine.secret:
        with pytest.raises(InvalidRequest, match="not this node's"):
            other.check_proof(proof, "join.request", {"node": "alpha"})


def test_a_token_carries_the_fingerprint_and_hides_its_secret() -> None:
    certificate = make_temporary(now=time.time()).certificate
    token = make_token(certificate)
    assert token.fingerprint == fingerprint_of(certificate)
    assert token.secret not in repr(token).encode()
    assert make_token(certificate).secret != token.secret


def test_a_proof_of_odd_characters_is_refused() -> None:
    token = JoinToken(bytes(16), bytes(32))
    with pytest.raises(InvalidRequest):
        token.check_proof("é", "join.request", {})
