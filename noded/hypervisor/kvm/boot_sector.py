"""The program with which a node finds out whether KVM works, run as a boot sector.

It does what the first instructions of a kernel do: it leaves real mode for 64-bit mode with
paging, counts for a while there, and writes 0x10 to port 0xf4, where a debugging device ends
QEMU. On some machines ``/dev/kvm`` exists and QEMU starts, but such code is crawled through one
emulated instruction at a time, and a kernel never comes up; there this program does not end
either.
"""

_PROGRAM = """
    fa               7c00 cli
    31c0             7c01 xor ax, ax
    8ed88ec08ed0     7c03 mov ds, ax; mov es, ax; mov ss, ax
    bc007c           7c09 mov sp, 0x7c00
    bf0010           7c0c mov di, 0x1000              page tables, empty at first
    b90018           7c0f mov cx, 0x1800
    f3ab             7c12 rep stosw
    c70600100320     7c14 mov word [0x1000], 0x2003   the first 2 MiB, each address itself
    c70600200330     7c1a mov word [0x2000], 0x3003
    c70600308300     7c20 mov word [0x3000], 0x0083
    660f0116807c     7c26 lgdt [0x7c80]
    66b820000000     7c2c mov eax, 0x20
    0f22e0           7c32 mov cr4, eax                wide page tables
    66b800100000     7c35 mov eax, 0x1000
    0f22d8           7c3b mov cr3, eax
    66b9800000c0     7c3e mov ecx, 0xc0000080
    0f32             7c44 rdmsr
    0d0001           7c46 or ax, 0x100
    0f30             7c49 wrmsr                       64-bit mode, once paging is on
    66b801000080     7c4b mov eax, 0x80000001
    0f22c0           7c51 mov cr0, eax                paging
    ea597c0800       7c54 jmp 8:0x7c59
    b900000002       7c59 mov ecx, 0x2000000          from here on in 64-bit mode
    e2fe             7c5e loop 0x7c5e
    b810000000       7c60 mov eax, 0x10
    66baf400         7c65 mov dx, 0xf4
    ee               7c69 out dx, al
    f4               7c6a hlt
    ebfd             7c6b jmp 0x7c6a
    909090           7c6d nop; nop; nop
    0000000000000000 7c70 segments: none
    00000000009a2000 7c78 and 64-bit code
    0f00707c0000     7c80 their length - 1, and address
"""


def boot_sector() -> bytes:
    """Return the program as 512 bytes with the signature that makes firmware start it."""
    code = bytes.fromhex("".join(line.split()[0] for line in _PROGRAM.strip().splitlines()))
    return code.ljust(510, b"\0") + b"\x55\xaa"
