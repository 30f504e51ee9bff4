"""The command line that runs a script of a definition that is not trusted.

It is nobody's, can never become more, and has no network. Of the node it sees programs and its own
definition, and of devices the disks that it is for, by names of their own. That it is in a chroot,
and not in a root of its own, keeps it from making names of users, in which it would be root again.
"""

from collections.abc import Sequence

UNTRUSTED = 65533  # Debian gives this user's number to nobody
TEMPORARY = "256m"  # of memory, for what it writes elsewhere than to disks
FILES = "64k"  # their number, which takes memory of its own
LOCKED = 64 << 10  # bytes of memory that it may keep from being swapped
PROCESSES = 256  # of all such scripts on a node, which have one user
MEMORY = 2 << 30  # bytes of addresses that each process can have
NO_MOUNT = (
    "A script that is not trusted cannot mount: have “mke2fs -d DIRECTORY” make a file system with "
    "files in it, or install from an image (-o image), or by a definition that root has looked at "
    "and that has “create”."
)

_OWN_NAMES = (
    "choom", "--adjust", "1000", "--",  # killed first, where memory gets short
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child",
)  # fmt: skip
_WITHOUT_RIGHTS = (
    "setpriv", f"--reuid={UNTRUSTED}", f"--regid={UNTRUSTED}", "--clear-groups",
    "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
    "prlimit", f"--nproc={PROCESSES}", f"--memlock={LOCKED}", f"--as={MEMORY}", "--core=0",
)  # fmt: skip

# Where its root directory is made, the definition, how many disks there are, and their devices.
_SETUP = f"""
set -eu
root=$1 definition=$2 disks=$3
shift 3
umask 022
seen() {{
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro,nosuid,nodev "$root$1"
}}
mount -t tmpfs -o size={TEMPORARY},nr_inodes={FILES},mode=755,nosuid none "$root"
mkdir "$root/dev" "$root/etc" "$root/proc" "$root/tmp"
chmod 1777 "$root/tmp"
seen /usr
for each in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$each" ]; then cp -P "/$each" "$root"; elif [ -d "/$each" ]; then seen "/$each"; fi
done
for each in alternatives group ld.so.cache mke2fs.conf nsswitch.conf passwd; do
    [ ! -e "/etc/$each" ] || cp -a "/etc/$each" "$root/etc"
done
[ -d "$root$definition" ] || seen "$definition"
cat >"$root/etc/no-mount" <<'END'
#!/bin/sh
echo "{NO_MOUNT}" >&2
exit 32
END
chmod 755 "$root/etc/no-mount"
program=$(readlink -f "$(command -v mount)")
[ ! -e "$root$program" ] || mount --bind "$root/etc/no-mount" "$root$program"
number=0
while [ "$number" -lt "$disks" ]; do
    device=$1
    shift
    kind=$(stat -L -c '0x%t 0x%T' "$device")
    mknod -m 600 "$root/dev/disk$number" b ${{kind% *}} ${{kind#* }}
    chown {UNTRUSTED}:{UNTRUSTED} "$root/dev/disk$number"
    number=$((number + 1))
done
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/urandom" c 1 9
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
exec chroot "$root" /bin/sh -c 'cd "$0" && "$@"; exit $?' "$definition" "$@"
"""


def path_of_disk(number: int) -> str:
    """Return where the script finds a disk."""
    return f"/dev/disk{number}"


def sandboxed(
    script: Sequence[str], *, root: str, definition: str, disks: Sequence[str]
) -> tuple[str, ...]:
    """Return what runs ``script``.

    Args:
        script: its command line.
        root: an empty directory.
        definition: the directory where it is started; it is read there.
        disks: block devices that it writes to, in their order; who has a file as a disk makes
            one of it, and holds it (``noded.operating_systems.held``).
    """
    setup = ("/bin/sh", "-c", _SETUP, "sandbox", root, definition, str(len(disks)), *disks)
    return (*_OWN_NAMES, "--", *setup, *_WITHOUT_RIGHTS, *script)
