"""``deploy/lab guest`` gives an operator an instance that runs Linux, with its console."""

import logging
import re

from deploy.uml.guest import ensure_guest
from tests.lab.stage import Stage, said, until

log = logging.getLogger(__name__)

NAME = "linux"
LIST = f"gnt-instance list --no-headers --separator=, -o pnode,uuid,status {NAME}"


def test_linux_boots_and_powers_off(stage: Stage) -> None:
    try:
        assert ensure_guest(stage.lab, NAME, log.info).name == "alpha"
        pnode, uuid, status = stage.alpha.run(LIST).strip().split(",")
        assert status == "running"
        node, console = stage.lab.node(pnode), f"/run/gantry/instances/{uuid}/serial.log"
        until(lambda: "count 3" in node.run(f"cat {console}"), "Linux to boot")
        log.info("%s", re.findall("Linux .* up after .* s", node.run(f"cat {console}")))

        ensure_guest(stage.lab, NAME, log.info)  # it is there
        shutdown = f"gnt-instance shutdown --timeout 300 {NAME}"
        assert "exit 0" in said(stage.alpha, shutdown)  # it obeys its power button
        assert stage.alpha.run(LIST).strip() == f"{pnode},{uuid},ADMIN_down"
    finally:
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
