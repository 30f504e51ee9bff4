"""A definition of an operating system for tests: its scripts write their names to the disks."""

from pathlib import Path

from common.noderpc.operating_systems import Script

_TEXT = """#!/bin/bash
echo "{script} of $INSTANCE_OS"
sleep 0.1
{failing}
for number in $(seq 0 $((DISK_COUNT - 1))); do
    path=DISK_${{number}}_PATH
    printf '%s' "$INSTANCE_OS for $INSTANCE_NAME" | dd of="${{!path}}" conv=notrunc status=none
done
"""


def write_definition(directory: Path, *, fails: Script | None = None) -> None:
    """Put a definition with two variants and two parameters into ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    for script in Script:
        path = directory / script
        failing = "echo no mirror; exit 1" if script is fails else ""
        text = _TEXT if script is not Script.VERIFY else "#!/bin/bash\n"
        path.write_text(text.format(script=script, failing=failing))
        path.chmod(0o755)
    (directory / "ganeti_api_version").write_text("15\n20\n")
    (directory / "variants.list").write_text("stable\ntesting\n")
    (directory / "parameters.list").write_text(
        "mirror where packages are\nroot_password\tof the guest\n"
    )


def write_script(directory: Path, script: Script, text: str) -> None:
    """Have a definition do something else."""
    path = directory / script
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
