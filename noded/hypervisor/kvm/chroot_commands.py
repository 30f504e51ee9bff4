"""The command line that runs a guest's program in a root directory of its own.

Programs and libraries are there, to be read. What is kept on the node is not, whoever may read it.
"""

# Makes a root directory, whose name is the first argument; below it seen() shows what is elsewhere.
_WITH_PROGRAMS = """
set -eu
root=$1
seen() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o "remount,bind,ro,nosuid,nodev$2" "$root$1"
}
umask 022
mount -t tmpfs -o size=1m,nr_inodes=1k,mode=755,nosuid none "$root"
mkdir "$root/dev" "$root/etc"
seen /usr ""
for each in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$each" ]; then cp -P "/$each" "$root"
    elif [ -d "/$each" ]; then seen "/$each" ""
    fi
done
for each in ld.so.cache localtime; do
    [ ! -e "/etc/$each" ] || cp -L "/etc/$each" "$root/etc"
done
for each in null zero urandom; do
    cp -a "/dev/$each" "$root/dev"
done
"""

# The root, the guest's directory, and the command.
_QEMUS = f"""{_WITH_PROGRAMS}
home=$2
shift 2
for each in kvm userfaultfd; do
    [ ! -e "/dev/$each" ] || cp -a "/dev/$each" "$root/dev"
done
seen "$home" ,noexec
mkdir "$root/proc"
mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc "$root/proc"
exec chroot "$root" "$@"
"""

# The root, whose its device is, the numbers of that, and the command.
_TPMS = f"""{_WITH_PROGRAMS}
mkdir -p "$root$root"
mknod -m 600 "$root$root/state" b "$3" "$4"
chown "$2:$2" "$root$root/state"
shift 4
exec chroot "$root" "$@"
"""


def in_chroot(command: tuple[str, ...], *, root: str, home: str) -> tuple[str, ...]:
    """Return what runs a command that sees its guest's directory and its own processes besides.

    Args:
        command: which gives up its rights first.
        root: an empty directory.
        home: the guest's directory, where it is lent a key while the guest moves.
    """
    return _set_up(_QEMUS, "chroot", root, home, *command)


def with_device(
    command: tuple[str, ...], *, root: str, user: int, device: tuple[int, int]
) -> tuple[str, ...]:
    """Return what runs a command that sees a block device besides, as ``state`` below ``root``.

    Args:
        command: which gives up its rights first.
        root: an empty directory.
        user: whose the device is.
        device: its major and minor number.
    """
    return _set_up(_TPMS, "tpm", root, *map(str, (user, *device)), *command)


def _set_up(script: str, name: str, *arguments: str) -> tuple[str, ...]:
    """Return what runs a script that mounts for itself alone.

    What the node unmounts is unmounted there, too, so that nothing is kept busy.
    """
    own = ("unshare", "--mount", "--propagation", "slave")
    return (*own, "--", "/bin/sh", "-c", script, name, *arguments)
