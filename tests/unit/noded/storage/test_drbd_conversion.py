"""Metadata of one version of DRBD on a node that has another: what becomes of them."""

import asyncio
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd.conversion import why_not_converted
from noded.storage.drbd.linux import LinuxDrbd
from noded.system.execute import CommandFailed, Finished

# As drbdmeta 9.22 told them of copies that 8.4.11 had left, detached, one after the other.
LEFT_FIRST = "339D00192EB5AD64:0000000000000000:0000000000000000:0000000000000000:1:0:0:0:0:0:0"
WROTE_ALONE = "1195F28F6B104AB3:339D00192EB5AD65:0000000000000000:0000000000000000:1:1:0:0:0:1:0"
UNCLEAN = 'Found unclean meta data. Did you "drbdadm apply-al"?'


def test_a_copy_that_left_the_other_one_may_be_converted() -> None:
    assert why_not_converted(f"{LEFT_FIRST}\n") == ""


def test_a_copy_that_only_followed_when_its_node_was_reset_may_be_converted() -> None:
    assert why_not_converted(LEFT_FIRST[:-13] + "1:1:0:1:0:0:0") == ""


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (WROTE_ALONE, "has what the other one lacks"),
        (LEFT_FIRST[:-13] + "1:1:1:0:0:0:0", "was in use"),
        (LEFT_FIRST[:-13] + "1:1:0:0:0:0:1", "was in use"),
        (LEFT_FIRST[:-13] + "1:1:0:0:1:0:0", "not good"),
        (LEFT_FIRST[:-13] + "0:0:0:0:0:0:0", "not good"),
        (LEFT_FIRST[:-2], "cannot be read"),
        (LEFT_FIRST + ":0", "cannot be read"),
        (LEFT_FIRST[:-1] + "2", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_what_would_be_forgotten_is_told(told: str, words: str) -> None:
    assert words in why_not_converted(told)


class Metadata:
    """A volume with metadata, and the programs that look at it; ``ran`` is what changed it."""

    def __init__(self, form: str, told: str) -> None:
        self.form, self.told = form, told
        self.ran: list[str] = []

    async def __call__(self, *argv: str, timeout_s: float) -> Finished:
        assert timeout_s > 0
        if argv[1] == "attach":
            self.ran.append("attach")
            if self.form == "v08":
                raise CommandFailed("No.", status=10, stderr=UNCLEAN)
            return Finished(b"", b"")
        form, word = next(each for each in argv if each in ("v08", "v09")), argv[-1]
        if "create-md" in argv:
            self.ran.append("create-md")
            self.form = form
        elif form != self.form:
            raise CommandFailed("No valid meta data found", status=1, stderr="")
        elif word == "apply-al":
            self.ran.append(word)
        return Finished(self.told.encode(), b"")


def node(root: Path, version: str, metadata: Metadata) -> LinuxDrbd:
    (module := root / "sys/module/drbd").mkdir(parents=True)
    (module / "version").write_text(f"{version}\n")
    return LinuxDrbd(metadata, root=root)


def attach(module: LinuxDrbd) -> None:
    asyncio.run(module.attach(7, "/dev/d", "/dev/m", MiB(64), DrbdParameters()))


def test_metadata_with_nothing_to_forget_are_converted_when_they_are_attached(
    tmp_path: Path,
) -> None:
    metadata = Metadata("v08", LEFT_FIRST)
    attach(node(tmp_path, "9.2.16", metadata))
    assert metadata.ran == ["attach", "create-md", "apply-al", "attach"]


def test_a_copy_that_has_what_the_other_one_lacks_stays_as_it_is(tmp_path: Path) -> None:
    metadata = Metadata("v08", WROTE_ALONE)
    with pytest.raises(NodeFailure, match="has what the other one lacks") as refused:
        attach(node(tmp_path, "9.2.16", metadata))
    assert "Start this node with the kernel that has DRBD 8.4" in refused.value.message
    assert (metadata.form, metadata.ran) == ("v08", ["attach"])


@pytest.mark.parametrize(("version", "form"), [("9.2.16", "v08"), ("8.4.11", "v09")])
def test_metadata_of_another_version_are_never_taken_for_none(
    tmp_path: Path, version: str, form: str
) -> None:
    """Whoever makes a disk again would write over what tells its copies apart."""
    (volume := tmp_path / "meta").write_bytes(b"\1" * 4096)
    metadata = Metadata(form, WROTE_ALONE)
    with pytest.raises(NodeFailure, match="They are not converted"):
        asyncio.run(node(tmp_path, version, metadata).ensure_meta(7, str(volume)))
    assert (metadata.form, metadata.ran) == (form, [])
