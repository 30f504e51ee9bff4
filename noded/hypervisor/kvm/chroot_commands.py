"""The command line that runs a QEMU in a root directory of its own (``use_chroot``).

There it finds programs and libraries, its own processes, and its guest's directory, where it is
lent a key while the guest moves. What is kept on the node is not there, whoever may read it.
"""

# Where the root is made, the guest's directory, and the command.
_SETUP = """
set -eu
root=$1 home=$2
shift 2
seen() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o "remount,bind,ro,nosuid,nodev$2" "$root$1"
}
umask 022
mount -t tmpfs -o size=1m,nr_inodes=1k,mode=755,nosuid none "$root"
mkdir "$root/dev" "$root/etc" "$root/proc"
seen /usr ""
for each in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$each" ]; then cp -P "/$each" "$root"
    elif [ -d "/$each" ]; then seen "/$each" ""
    fi
done
for each in ld.so.cache localtime; do
    [ ! -e "/etc/$each" ] || cp -L "/etc/$each" "$root/etc"
done
for each in null zero urandom kvm userfaultfd; do
    [ ! -e "/dev/$each" ] || cp -a "/dev/$each" "$root/dev"
done
seen "$home" ,noexec
mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc "$root/proc"
exec chroot "$root" "$@"
"""


def in_chroot(command: tuple[str, ...], *, root: str, home: str) -> tuple[str, ...]:
    """Return what runs a command in a root directory of its own.

    Args:
        command: which gives up its rights first.
        root: an empty directory.
        home: the guest's directory.
    """
    setup = ("/bin/sh", "-c", _SETUP, "chroot", root, home)
    return ("unshare", "--mount", "--propagation", "slave", "--", *setup, *command)
