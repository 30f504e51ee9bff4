"""A guest that needs no operating system: up in a quarter of a second, with 8 MiB of memory.

It fills 6 MiB of its memory, so that moving it takes a while. Then, eighteen times a second, it
adds one to a number, writes the number to the second sector of its disk, and then eight
hexadecimal digits and a new line to its serial console. When the power button is pressed, it
turns itself off. After a reset it begins with 1 again.
"""

from pathlib import Path

MEMORY_MIB = 8
DISK_MIB = 1  # the firmware reads no smaller ones

_PROGRAM = """
    fa               7c00 cli
    31c0             7c01 xor ax, ax
    8ed8             7c03 mov ds, ax
    8ec0             7c05 mov es, ax
    8ed0             7c07 mov ss, ax
    bc007c           7c09 mov sp, 0x7c00
    8816047e         7c0c mov [0x7e04], dl           the disk we came from
    0f0116a87c       7c10 lgdt [0x7ca8]              a look into protected mode, and back,
    0f20c0           7c15 mov eax, cr0               with a segment that spans all memory
    0c01             7c18 or al, 1
    0f22c0           7c1a mov cr0, eax
    bb0800           7c1d mov bx, 8
    8ec3             7c20 mov es, bx
    24fe             7c22 and al, 0xfe
    0f22c0           7c24 mov cr0, eax
    66bf00001000     7c27 mov edi, 0x100000          fill it from 1 MiB
    66b900001800     7c2d mov ecx, 0x180000          with 6 MiB
    6689c8           7c33 mov eax, ecx               of something
    6766f3ab         7c36 rep stosd
    31c0             7c3a xor ax, ax
    8ec0             7c3c mov es, ax
    fb               7c3e sti
    e4a1             7c3f in al, 0xa1                no interrupt for the power button,
    0c02             7c41 or al, 2
    e6a1             7c43 out 0xa1, al
    ba0206           7c45 mov dx, 0x602              but a bit that tells
    b80001           7c48 mov ax, 0x100
    ef               7c4b out dx, ax
    66ff06007e       7c4c inc dword [0x7e00]
    beae7c           7c51 mov si, 0x7cae             write it to the disk
    8a16047e         7c54 mov dl, [0x7e04]
    b80043           7c58 mov ax, 0x4300
    cd13             7c5b int 0x13
    668b1e007e       7c5d mov ebx, [0x7e00]
    b90800           7c62 mov cx, 8
    66c1c304         7c65 rol ebx, 4
    88d8             7c69 mov al, bl
    240f             7c6b and al, 15
    3c0a             7c6d cmp al, 10                 a digit as a character
    1c69             7c6f sbb al, 0x69
    2f               7c71 das
    e81a00           7c72 call 0x7c8f
    e2ee             7c75 loop 0x7c65
    b00a             7c77 mov al, 10
    e81300           7c79 call 0x7c8f
    f4               7c7c hlt                        until the clock ticks
    ba0006           7c7d mov dx, 0x600
    ed               7c80 in ax, dx
    f6c401           7c81 test ah, 1                 the power button?
    74c6             7c84 je 0x7c4c
    ba0406           7c86 mov dx, 0x604
    b80020           7c89 mov ax, 0x2000
    ef               7c8c out dx, ax                 off
    ebbd             7c8d jmp 0x7c4c
    baf803           7c8f mov dx, 0x3f8              one character
    ee               7c92 out dx, al
    c3               7c93 ret
    0000000000000000 7c94
    00000000         7c9c segments: none
    ffff00000092cf00 7ca0 and all memory
    0f00987c0000     7ca8 their length - 1, and address
    1000010000       7cae what to write: 1 sector
    7e00000100000000 7cb3 from 0x7e00, to sector 1
    000000           7cbb
"""


def make_disk(path: Path) -> None:
    """Write the disk image of a tiny guest."""
    code = bytes.fromhex("".join(line.split()[0] for line in _PROGRAM.strip().splitlines()))
    sector = code.ljust(510, b"\0") + b"\x55\xaa"
    path.write_bytes(sector.ljust(DISK_MIB << 20, b"\0"))


def last_number(console: bytes) -> int:
    """Return the newest number on a console, 0 before the first."""
    *complete, _ = console.split(b"\n")
    numbers = [line.strip() for line in complete if len(line.strip()) == 8]
    return int(numbers[-1], 16) if numbers else 0


def number_on_disk(path: Path) -> int:
    """Return the newest number that reached the disk."""
    with path.open("rb") as disk:
        disk.seek(512)
        return int.from_bytes(disk.read(4), "little")
