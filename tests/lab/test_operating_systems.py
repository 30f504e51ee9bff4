"""Scripts of an operating system on real volumes: they make a file system, mount and rename."""

import shlex

from deploy.uml.node import Node
from tests.lab.stage import Stage, said, until

PLACE = "/usr/local/lib/gantry/os/small"
CREATE = """#!/bin/bash
set -e
echo "installing $OS_VARIANT on $DISK_0_PATH"
mke2fs -Fq "$DISK_0_PATH"
there=$(mktemp -d)
mount "$DISK_0_PATH" "$there"
echo "$INSTANCE_NAME" > "$there/hostname"
echo "$OSP_WORD" > "$there/word"
while [ -e /run/wait-here ]; do sleep 1; done
echo "done, and left mounted"
"""
RENAME = """#!/bin/bash
set -e
there=$(mktemp -d)
mount "$DISK_0_PATH" "$there"
[ "$(cat "$there/hostname")" = "$OLD_INSTANCE_NAME" ]
echo "$INSTANCE_NAME" > "$there/hostname"
umount "$there"
"""
FILES = {
    "create": CREATE, "rename": RENAME, "ganeti_api_version": "20\n", "variants.list": "usual\n",
    "parameters.list": "word what is written\n",
}  # fmt: skip


def put(node: Node) -> None:
    lines = [f"mkdir -p {PLACE}"]
    lines += [f"printf %s {shlex.quote(text)} > {PLACE}/{name}" for name, text in FILES.items()]
    node.run("; ".join([*lines, f"chmod 755 {PLACE}/create {PLACE}/rename"]))


def installed(node: Node) -> str:
    """Return what is in the file system on the only volume of a node that is an instance's."""
    name = node.run("lvs --noheadings -o lv_name @gantry").split()[0]
    node.run(f"lvchange -ay -K gantry/{name}")
    try:
        cats = (f"debugfs -R 'cat /{file}' /dev/gantry/{name}" for file in ("hostname", "word"))
        return node.run(f"({'; '.join(cats)}) 2>/dev/null")
    finally:
        node.run(f"lvchange -an gantry/{name}")


def test_an_instance_is_installed_on_a_volume_while_noded_is_restarted(stage: Stage) -> None:
    nodes = (stage.alpha, stage.beta, stage.gamma)
    for node in nodes:
        put(node)
    try:
        assert "small+usual" in said(stage.alpha, "gnt-os list")
        stage.gamma.run("touch /run/wait-here")
        add = "gnt-instance add -t plain --disk 0:size=16M --no-nics --no-start -n gamma"
        said(
            stage.alpha,
            f"{add} -o small+usual -O word=spoken --os-parameters-secret word=unspoken "
            "--submit store",
        )
        until(lambda: "installing" in stage.gamma.run("cat /var/log/gantry/os/*.log || :"), "begun")
        stage.gamma.run("systemctl restart gantry-noded; rm /run/wait-here")
        until(lambda: "store" in stage.alpha.run("gnt-instance list -o name"), "installed")
        until(lambda: "running" not in stage.alpha.run("gnt-job list -o status"), "job's end")
        assert "ext" not in stage.gamma.run("grep /tmp/tmp /proc/mounts || :")
        assert installed(stage.gamma).split() == ["store", "unspoken"]
        assert "unspoken" not in stage.alpha.run("gnt-job list -o opresult,oplog,ops")
        said(stage.alpha, "gnt-instance rename store shop")
        assert installed(stage.gamma).split() == ["shop", "unspoken"]
        said(stage.alpha, "gnt-instance reinstall --force -O word=again shop")
        assert installed(stage.gamma).split() == ["shop", "again"]
    finally:
        stage.gamma.run("rm -f /run/wait-here")
        for name in ("store", "shop"):
            stage.alpha.run(f"gnt-instance remove --force {name} || :")
        for node in nodes:
            node.run(f"rm -r {PLACE}")
