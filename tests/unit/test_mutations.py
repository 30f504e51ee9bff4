"""The faults that are planted on request still fit the code."""

import ast
from pathlib import Path

import pytest

from tests.mutate.fault import Fault
from tests.mutate.faults import FAULTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_fits_the_code(fault: Fault) -> None:
    ast.parse(fault.planted(ROOT))
    missing = [each for each in fault.tests if not (ROOT / each.partition(" ")[0]).exists()]
    assert not missing, "the tests that should notice it are gone"


def test_no_two_faults_have_one_name() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names))
