"""The choice of the lab's kernel, with programs that behave as kernels do."""

from pathlib import Path

import pytest

from deploy.uml import kernel, trial
from deploy.uml.command import Trouble
from deploy.uml.kernel import KERNELS, Kernel, choose, of_image

STARTS_PROGRAMS = """\
#!/bin/sh
for word; do case $word in rootflags=*) "${word#rootflags=}/init" || true;; esac; done
"""
FINDS_A_ROOT_ONLY = """\
#!/bin/sh
echo "VFS: Mounted root (hostfs filesystem)"
echo "ptrace set fp regs failed, errno = 14"
exit 1
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "CACHE", tmp_path)
    monkeypatch.setattr(trial, "INIT", f"#!/bin/sh\necho '{trial.PROOF}'\n")
    monkeypatch.delenv("GANTRY_LAB_KERNEL", raising=False)


def fetched(one: Kernel, program: str) -> None:
    one.program.parent.mkdir(parents=True)
    one.program.write_text(program)
    one.program.chmod(0o755)


def test_a_kernel_that_starts_no_program_is_passed_over(tmp_path: Path) -> None:
    said: list[str] = []
    first, second = KERNELS
    fetched(first, FINDS_A_ROOT_ONLY)
    fetched(second, STARTS_PROGRAMS)
    assert choose(tmp_path, said.append) is second
    assert "ptrace set fp regs failed" in said[0]


def test_the_first_that_starts_programs_is_chosen(tmp_path: Path) -> None:
    for one in KERNELS:
        fetched(one, STARTS_PROGRAMS)
    assert choose(tmp_path, print) is KERNELS[0]


def test_where_none_starts_programs_it_is_told_why_of_each(tmp_path: Path) -> None:
    for one in KERNELS:
        fetched(one, FINDS_A_ROOT_ONLY)
    with pytest.raises(Trouble, match=r"bookworm.*errno = 14.*unstable.*errno = 14"):
        choose(tmp_path, print)


def test_one_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in KERNELS:
        fetched(one, STARTS_PROGRAMS)
    monkeypatch.setenv("GANTRY_LAB_KERNEL", "unstable")
    assert choose(tmp_path, print) is KERNELS[1]
    monkeypatch.setenv("GANTRY_LAB_KERNEL", "sarge")
    with pytest.raises(Trouble, match="there are bookworm and unstable"):
        choose(tmp_path, print)


def test_an_image_is_started_with_the_kernel_that_it_has_modules_of() -> None:
    image = Path("image-unstable-0123.ext4")
    with pytest.raises(Trouble, match="not there any more"):
        of_image(image)
    fetched(KERNELS[1], STARTS_PROGRAMS)
    assert of_image(image) is KERNELS[1]
