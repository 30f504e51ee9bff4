"""What the parameters of instances mean, for the manual. A test holds the lists complete."""

HYPERVISOR = {
    "accelerator": "How its processors are run: kvm, tcg, or auto, which takes KVM where it works.",
    "acpi": "Whether it has ACPI; without it, it cannot be asked to power off.",
    "boot_order": "What it boots from without kernel_path: disk, cdrom or network.",
    "cdrom2_image_path": "File on the node that is in its second CD drive.",
    "cdrom_disk_type": "What its CD drives are plugged into: ide (default) or scsi.",
    "cdrom_image_path": "File on the node that is in its CD drive, as an ISO image; the node's "
    "root says which files may be.",
    "cpu_cores": "Cores of each socket; 0: as QEMU chooses.",
    "cpu_mask": "Processors of the node that its own run on: all, 0-3,^2 for all of them, or a "
    "list for each, with colons between.",
    "cpu_sockets": "Number of sockets; 0: as QEMU chooses.",
    "cpu_threads": "Threads of each core; 0: as QEMU chooses.",
    "cpu_type": "Kind of processor, as qemu -cpu has it; none: QEMU's own choice.",
    "disk_aio": "How QEMU reads and writes disks: threads, native or io_uring.",
    "disk_cache": "Cache of its disks: default, none, writethrough or writeback.",
    "disk_discard": "What becomes of what it discards: unmap (default) gives it back, ignore does "
    "not.",
    "disk_type": "What its disks are: paravirtual (virtio), ide (at most four, and none comes "
    "while it runs) or scsi.",
    "firmware": "What it starts with: bios, uefi, or secure-boot, which is UEFI that starts only "
    "what is signed, on a machine_version as pc-q35-7.2. Needs the package ovmf on its nodes. "
    "Its variables begin anew with each start.",
    "floppy_image_path": "Ganeti's; no guest has a floppy drive.",
    "initrd_path": "File on the node with the initial RAM disk; goes with kernel_path.",
    "kernel_args": "Words for the kernel of kernel_path.",
    "kernel_path": "File on the node with a kernel to boot; none: firmware boots from boot_order.",
    "keymap": "Keyboard of its display, as de or en-gb.",
    "kvm_extra": "Further options of QEMU, as in a shell; the node's root has to allow any.",
    "kvm_flag": "Ganeti's way to say accelerator: enabled is kvm, disabled is tcg.",
    "kvm_path": "The QEMU program; the node's root says which may be used.",
    "kvm_pci_reservations": "Ganeti's; there are places for 16 disks and 8 nics.",
    "machine_version": "Kind of machine, as qemu -machine has it; none: QEMU's newest.",
    "mem_path": "Where huge pages are mounted on the node, of which its memory is made; none: "
    "usual pages.",
    "migration_bandwidth": "At most so many MiB a second while it is migrated.",
    "migration_caps": "Ways of migrating it besides, with colons: xbzrle sends of a page what has "
    "changed only; with postcopy-ram it goes on at its target when all memory was sent once and is "
    "lost if either node dies before the rest has come; auto-converge, which slows it down where "
    "that is needed, is always used.",
    "migration_downtime": "At most so many milliseconds of standstill at the end of a migration.",
    "migration_mode": "Whether it runs while it is migrated: live, or non-live.",
    "nic_type": "Kind of network card: paravirtual (virtio), e1000, rtl8139, pcnet, ne2k_pci, "
    "i82551, i82557b or i82559er.",
    "reboot_behavior": "What a reboot from within does: reboot, or exit, which ends it.",
    "rng": "Whether it gets random numbers from the node, by virtio.",
    "root_path": "Root file system that the kernel of kernel_path is told, as root=.",
    "scsi_controller_type": "Controller of what is SCSI: lsi (six disks), megasas or virtio-scsi- "
    "pci.",
    "security_domain": "Ganeti's; the name that goes with security_model=user.",
    "security_model": "Each guest is run by a user of its own: none and user; with pool by one of "
    "the cluster's pool of user ids.",
    "serial_console": "Whether it has a serial port, which gnt-instance console shows.",
    "serial_speed": "Speed of that port, told to the kernel of kernel_path.",
    "soundhw": "Sound card: ac97, es1370 or hda; heard through SPICE, or nowhere.",
    "spice_bind": "IP address at which its display is offered by SPICE; without a "
    "spice_password_file 127.0.0.1 or ::1.",
    "spice_image_compression": "How SPICE compresses images: auto_glz, auto_lz, quic, glz, lz or "
    "off.",
    "spice_ip_version": "4 or 6, which spice_bind has to be; 0: either.",
    "spice_jpeg_wan_compression": "When SPICE sends JPEG to those far away: auto, never or always.",
    "spice_password_file": "File on the node with the password of its SPICE display; see "
    "vnc_password_file.",
    "spice_playback_compression": "Whether SPICE compresses sound.",
    "spice_streaming_video": "What SPICE takes for video: off, all or filter.",
    "spice_tls_ciphers": "Ganeti's; displays are not encrypted.",
    "spice_use_tls": "Ganeti's; displays are not encrypted: use ssh.",
    "spice_use_vdagent": "Whether the SPICE agent in the guest has a line to the viewer.",
    "spice_zlib_glz_wan_compression": "When SPICE uses zlib over glz for those far away: auto, "
    "never or always.",
    "tpm": "Name of the disk on which its TPM keeps its state, and which it does not see; none: "
    "no TPM. Needs the package swtpm on its nodes.",
    "usb_devices": "USB devices, with commas: keyboard, mouse, tablet, wacom-tablet.",
    "usb_mouse": "Its pointer on USB: mouse, or tablet, which follows a viewer's exactly.",
    "use_chroot": "Whether QEMU has a root directory of its own, with programs and libraries only.",
    "use_guest_agent": "Whether it has a line to qemu-guest-agent in the guest.",
    "use_localtime": "Whether its clock shows the node's time zone.",
    "user_shutdown": "Ganeti's; what was turned off from within is started again by the watcher.",
    "vga": "Kind of graphics card: none, std, cirrus, vmware, qxl or virtio; not told: none, std "
    "with VNC, qxl with SPICE.",
    "vhost_net": "Whether the node's kernel copies packets of its nics (module vhost_net).",
    "virtio_net_queues": "Queues of each paravirtual nic, 1 to 8: so many processors send and "
    "receive at once.",
    "vnc_bind_address": "Address at which its display is offered; none: no display. Without a "
    "vnc_password_file it is 127.0.0.1 or ::1.",
    "vnc_password_file": "File on the node with the password of its display, which root of the "
    "node has to allow in /etc/gantry/guests.",
    "vnc_tls": "Ganeti's; displays are not encrypted: use ssh.",
    "vnc_x509_path": "Ganeti's; displays are not encrypted.",
    "vnc_x509_verify": "Ganeti's; displays are not encrypted.",
    "vnet_hdr": "Ganeti's; taps always leave checksums and segmenting to the host.",
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
