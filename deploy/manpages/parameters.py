"""What the parameters of instances mean, for the manual. A test holds the lists complete."""

HYPERVISOR = {
    "accelerator": "How its processors are run: kvm, tcg, or auto, which takes KVM where it works.",
    "acpi": "Whether it has ACPI; without it, it cannot be asked to power off.",
    "boot_order": "What it boots from without kernel_path: disk or network.",
    "cpu_type": "Kind of processor, as qemu -cpu has it; none: QEMU's own choice.",
    "disk_aio": "How QEMU reads and writes disks: threads, native or io_uring.",
    "disk_cache": "Cache of its disks: default, none, writethrough or writeback.",
    "disk_discard": "What becomes of what it discards: unmap (default) gives it back, ignore does "
    "not.",
    "initrd_path": "File on the node with the initial RAM disk; goes with kernel_path.",
    "kernel_args": "Words for the kernel of kernel_path.",
    "kernel_path": "File on the node with a kernel to boot; none: firmware boots from boot_order.",
    "kvm_path": "The QEMU program; the node's root says which may be used.",
    "machine_version": "Kind of machine, as qemu -machine has it; none: QEMU's newest.",
    "migration_bandwidth": "At most so many MiB a second while it is migrated.",
    "migration_caps": "Ways of migrating it besides, with colons: xbzrle sends of a page what has "
    "changed only; auto-converge, which slows it down where that is needed, is always used.",
    "migration_mode": "Whether it runs while it is migrated: live, or non-live.",
    "migration_downtime": "At most so many milliseconds of standstill at the end of a migration.",
    "nic_type": "Kind of network card: paravirtual (virtio), e1000 or rtl8139.",
    "root_path": "Root file system that the kernel of kernel_path is told, as root=.",
    "serial_console": "Whether it has a serial port, which gnt-instance console shows.",
    "serial_speed": "Speed of that port, told to the kernel of kernel_path.",
    "vga": "Kind of graphics card, as qemu -vga has it; none: no card, or QEMU's with a display.",
    "vnc_bind_address": "Address at which its display is offered; none: no display. Without a "
    "vnc_password_file it is 127.0.0.1 or ::1.",
    "vnc_password_file": "File on the node with the password of its display, which root of the "
    "node has to allow in /etc/gantry/guests.",
}
BACKEND = {
    "maxmem": "Memory that it is given.",
    "minmem": "Memory that it uses at least: it is given maxmem, and can be asked to use less "
    "while it runs.",
    "vcpus": "Number of processors.",
    "auto_balance": "Whether room is kept for it where it is mirrored.",
    "spindle_use": "How much it counts among those that share disks.",
    "always_failover": "Ganeti's; moves are made as they are asked for.",
}
