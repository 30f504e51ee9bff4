"""Mistakes are told before anything is submitted."""

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--ipolicy-vcpu-ratio many", "vcpu-ratio: “many” is no number"),
        ("--ipolicy-bounds-specs min:cpu-count=1", "is not one min:… and one max:…"),
        ("--ipolicy-bounds-specs min:cpu-count=1/max:cpu-count=2", "min does not say disk-count"),
        ("--alloc-policy sometimes", "none of preferred, last_resort, unallocable"),
    ],
)
def test_a_policy_that_is_none_is_refused_by_the_command(run: Run, words: str, told: str) -> None:
    ran = run(f"gnt-group add {words} attic")
    assert ran.code == 2
    assert told in ran.err


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("gnt-instance add web1 -t sharedfile --disk 0:size=12Q", 2, "--disk: “12Q” is no size"),
        ("gnt-instance add web1 -t sharedfile --disk 0:mode=ro", 2, "size"),
        ("gnt-instance add web1 -t wood", 2, "“wood” is none of"),
        ("gnt-instance add web1", 2, "--disk-template"),
        ("gnt-instance add web1 -t diskless --no-nics --net 0:link=br1", 2, "--no-nics"),
        ("gnt-instance add web1 -t diskless --net 0:link=br1 --no-nics", 2, "--net"),
        ("gnt-instance add web1 -t diskless -B memory", 2, "memory needs a value"),
        ("gnt-instance shutdown --primry beta", 2, "did you mean “--primary”?"),
        ("gnt-instance migrate --warp web1 web2", 2, "There is no option “--warp”; see"),
        ("gnt-debug delay 1 2", 2, "“2” is too much"),
        ("gnt-debug delay inf", 2, "“inf” is no number that can be sent"),
        ("gnt-debug delay nan", 2, "“nan” is no number that can be sent"),
        ("gnt-debug delay 1e400", 2, "“1e400” is no number that can be sent"),
        ("gnt-instance shutdown --timeout=-5 mail", 2, "timeout is a whole number, at least 0"),
        ("gnt-instance remove -f --shutdown-timeout=999999 mail", 2, "at most 604800"),
        ("gnt-cluster allocate -t wood", 2, "(choose from 'diskless', 'file', "),
        ("gnt-instance strat web1", 2, "There is no “gnt-instance strat”; did you mean “start”?"),
        ("gnt-node swap beta delta", 2, "There is no “gnt-node swap”; see"),
        ("gnt-job why 9999999999999999", 2, "“9999999999999999” is no number of a job"),
        ("gnt-instance add web1 -t diskless -B vcpus=two", 2, "vcpus: “two” is no number"),
        ("gnt-instance add web1 -t diskless -H kvm:acpi=maybe", 2, "acpi: “maybe” is neither"),
        ("gnt-instance shutdown --timeout=soon web1", 2, "--timeout: “soon” is no number"),
        ("gnt-instance shutdown", 2, "Say which instances"),
        ("gnt-instance shutdown --all web1", 2, "--all takes no names"),
        ("gnt-instance shutdown --primary", 2, "--primary takes names"),
        ("gnt-node modify -O perhaps beta", 2, "--offline: “perhaps” is neither yes nor no"),
        ("gnt-debug delay 1 --priority=99", 2, "--priority: “99”"),
        ("gnt-cluster modify --ipolicy-vcpu-ratio nan", 2, "vcpu-ratio: “nan” is no number that"),
        ("gnt-group add --ipolicy-spindle-ratio inf a", 2, "spindle-ratio: “inf” is no number"),
        (
            "gnt-instance modify -H usb_mouse=x web1",
            2,
            "usb_mouse: “x” is none of “”, mouse, tablet",
        ),
        ("gnt-instance snapshot web1 nice~one", 2, "NAME is 1 to 64 letters, digits and “_.+-”"),
        ("gnt-instance remove web1", 13, "Delete web1.example.com, with all the data on the"),
        ("gnt-instance modify --disk 1:remove web1", 13, "Delete disk 1 of web1, with all the"),
        ("gnt-node powercycle beta", 13, "Reboot beta at once"),
        ("gnt-instance remove mail web9", 3, "There is no instance “web9”"),
        ("gnt-instance migrate web9", 3, "There is no instance “web9”"),
        ("gnt-instance failover web9 mail", 3, "There is no instance “web9”"),
        ("gnt-instance shutdown web* nosuch", 3, "There is no instance “nosuch”"),
        ("gnt-node evacuate betta", 3, "There is no node “betta” in this cluster. Did you mean"),
        ("gnt-node powercycle betta", 3, "There is no node “betta”"),
        ("gnt-cluster destroy", 13, "--yes-do-it"),
        ("gnt-cluster master-failover --no-voting", 13, "--yes-do-it"),
    ],
)
def test_mistakes_are_told_before_anything_is_submitted(
    run: Run, submitted: list[list[dict[str, object]]], line: str, code: int, told: str
) -> None:
    ran = run(line)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert submitted == []
