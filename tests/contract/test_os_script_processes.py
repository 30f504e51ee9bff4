"""What scripts of operating systems meet and leave behind, as real processes."""

import os
import signal
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.noderpc.operating_systems import ScriptOrder, ScriptReport
from noded.copies.device import claim
from noded.operating_systems.driver import ProcessOsDriver
from noded.operating_systems.leftovers import layers_on
from tests.support.https_node import run as run_really
from tests.support.os_definition import write_definition
from tests.support.script_rigs import (
    RUN,
    ProcessRig,
    attached,
    begun,
    ended,
    order,
)


@pytest.fixture
def real(tmp_path: Path) -> ProcessRig:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return ProcessRig(tmp_path)


def script_of(real: ProcessRig, text: str, script: str = "create") -> None:
    write_definition(real.definitions / "debian")
    (real.definitions / "debian" / script).write_text(f"#!/bin/bash\n{text}\n")


def after_run(real: ProcessRig, what: ScriptOrder | None = None) -> tuple[str, ScriptReport]:
    async def story() -> tuple[str, ScriptReport]:
        await attached(real)
        await real.driver.begin(RUN, what or order(real))
        return await ended(real.driver)

    return run_really(story())


def test_the_environment_is_what_it_is_told_and_nothing_else(real: ProcessRig) -> None:
    script_of(real, "env | sort")
    said, _ = after_run(real)
    names = {line.partition("=")[0] for line in said.splitlines()}
    of_bash = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names - of_bash == {
        "OS_API_VERSION", "OS_NAME", "OS_VARIANT", "DEBUG_LEVEL", "PATH", "INSTANCE_NAME",
        "INSTANCE_OS", "INSTANCE_UUID", "INSTANCE_CTIME", "INSTANCE_MTIME",
        "INSTANCE_PRIMARY_NODE", "INSTANCE_SECONDARY_NODES", "HYPERVISOR", "INSTANCE_HYPERVISOR",
        "DISK_COUNT", "DISK_0_ACCESS", "DISK_0_PATH", "DISK_0_UUID", "DISK_0_SIZE",
        "DISK_0_FRONTEND_TYPE", "DISK_0_BACKEND_TYPE", "NIC_COUNT",
    }  # fmt: skip
    assert f"DISK_0_PATH={real.path}" in said.splitlines()


def test_what_a_script_has_mounted_and_started_ends_with_it(real: ProcessRig) -> None:
    there = real.root / "mounted"
    there.mkdir()
    script_of(
        real, f"mount -t tmpfs none {there} && touch {there}/file && setsid sleep 1000 & sleep 0.2"
    )
    _, report = after_run(real)
    assert report.problem == ""
    assert not any(there.iterdir())
    assert not _running("sleep 1000")


def test_a_script_that_is_told_to_end_clears_up(real: ProcessRig) -> None:
    script_of(
        real,
        f"trap 'echo clear > {real.root}/cleared' EXIT\necho ready\nwhile :; do sleep 0.1; done",
    )

    async def story() -> None:
        await attached(real)
        await begun(real)
        real.restart_noded()
        await real.driver.end(RUN)

    run_really(story())
    assert (real.root / "cleared").read_text() == "clear\n"
    claim(descriptor := os.open(real.path, os.O_RDWR), "disk", to_write=True)
    os.close(descriptor)


def test_devices_that_a_script_has_left_on_its_disk_are_taken_away(real: ProcessRig) -> None:
    script_of(real, "losetup --show -f $DISK_0_PATH\necho ready\nwhile :; do sleep 0.1; done")

    async def story() -> tuple[str, ...]:
        await attached(real)
        await begun(real)
        while "ready" not in (await real.driver.look(RUN, 0)).text:
            pass
        path = str(real.path)
        there = layers_on([path])
        await real.driver.end(RUN)
        assert layers_on([path]) == ()
        return there

    (loop,) = run_really(story())
    assert loop.startswith("/dev/loop")


def test_a_script_ends_with_the_process_that_runs_it(real: ProcessRig) -> None:
    script_of(real, "trap '' TERM\necho ready\nsleep 1234")

    async def story() -> ScriptReport:
        await attached(real)
        await begun(real)
        assert isinstance(real.driver, ProcessOsDriver)
        found = real.driver._home(RUN).process()
        assert found
        with found:
            found.signal(signal.SIGKILL)
        return (await ended(real.driver))[1]

    assert run_really(story()).problem == "The script create of debian+stable for web1 was killed."
    deadline = time.monotonic() + 20
    while _running("sleep 1234"):  # the kernel takes it down
        assert time.monotonic() < deadline


def test_confidential_values_are_in_no_output_and_no_log(real: ProcessRig) -> None:
    script_of(real, 'set -x\necho "password is $OSP_ROOT_PASSWORD"')
    what = replace(
        order(real), parameters={"root_password": "open sesame"}, confidential=("root_password",)
    )
    said, report = after_run(real, what)
    assert "password is ********" in said
    assert "sesame" not in said + Path(report.log).read_text()
    left = [path for path in real.root.rglob("*") if path.is_file() and path != real.path]
    assert not [path for path in left if b"sesame" in path.read_bytes()]


@pytest.mark.parametrize("before", ["", 'echo "$OSP_ROOT_PASSWORD"; '])
def test_confidential_values_are_not_told_when_parameters_are_refused(
    real: ProcessRig, before: str
) -> None:
    refusal = f'{{ {before}echo "no password: $OSP_ROOT_PASSWORD"; }} >&2; exit 1'
    script_of(real, refusal, "verify")
    secret = "open sesame" if not before else "sesame" * 166  # of which a half would be told
    what = replace(
        order(real), parameters={"root_password": secret}, confidential=("root_password",)
    )
    with pytest.raises(
        NodeFailure, match=r"(?s)with these parameters: .*no password: \*+$"
    ) as seen:
        run_really(real.driver.check(what))
    assert "sesame" not in str(seen.value) + str(seen.value.detail)


def test_a_verification_that_is_killed_is_told_as_that_and_not_only_by_what_it_said(
    real: ProcessRig,
) -> None:
    script_of(real, "echo looking for mirrors >&2; kill -9 $$", "verify")
    with pytest.raises(NodeFailure, match=r"was ended by signal 9 .* looking for mirrors$"):
        run_really(real.driver.check(order(real)))


def test_more_output_than_fits_in_one_answer_is_told_in_whole(real: ProcessRig) -> None:
    script_of(real, "seq 1 20000")
    said, _ = after_run(real)
    assert said.splitlines() == [str(number) for number in range(1, 20001)]


def test_definitions_that_others_can_change_or_that_are_incomplete_say_so(
    real: ProcessRig,
) -> None:
    for name in ("loose", "bare", "half", "future"):
        write_definition(real.definitions / name)
    (real.definitions / "loose").chmod(0o777)
    (real.definitions / "bare" / "create").unlink()
    (real.definitions / "half" / "import").unlink()
    (real.definitions / "future" / "ganeti_api_version").write_text("40\n")
    found = {each.name: each.problem for each in run_really(real.driver.definitions())}
    assert found["debian"] == ""
    assert "writable by nobody else" in found["loose"]
    assert "has no script “create”" in found["bare"]
    assert "it needs both or neither" in found["half"]
    assert "is for the versions 40" in found["future"]


def _running(words: str) -> bool:
    wanted = words.encode().replace(b" ", b"\0") + b"\0"
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cmdline").read_bytes() == wanted:
                return True
        except OSError:
            continue
    return False
