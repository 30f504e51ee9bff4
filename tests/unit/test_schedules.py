"""What ``deploy/sim`` plays is the same story again for the same seed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = "print(list({'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta'}))"


def test_sets_of_names_have_one_order_in_all_processes_that_play() -> None:
    settings = [
        line.partition("#")[0].removeprefix("export ").strip()
        for line in (ROOT / "deploy/sim").read_text().splitlines()
        if line.startswith("export ")
    ]
    environment = os.environ | dict(each.split("=", 1) for each in settings)
    orders = {
        subprocess.check_output([sys.executable, "-c", NAMES], env=environment) for _ in range(3)
    }
    assert len(orders) == 1
