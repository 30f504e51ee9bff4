; A guest that needs no operating system; see tiny_guest.py. For nasm, as a flat file of two
; sectors: the first is a boot sector; both are what QEMU takes for an old Linux kernel.

bits 16
org 0x7c00

RING        equ 2047            ; sectors with records, after the boot sector: 1 MiB in all
CHUNK       equ 89              ; read at once when it starts; RING is 23 of these
MAGIC       equ "TICK"

; Ports of the PC's power management, where QEMU's firmware puts them.
PM_STATUS   equ 0x600           ; bit 8: the power button was pressed
PM_ENABLE   equ 0x602
PM_CONTROL  equ 0x604
SERIAL      equ 0x3f8
; Ports of its PCI slots, a bit for each: those asked to be given up, and those given up.
PCI_DOWN    equ 0xae04
PCI_EJECT   equ 0xae08

; Memory after the program.
number      equ 0x7e00          ; the newest
life        equ 0x7e04          ; another number for each start
drive       equ 0x7e08          ; as the firmware calls it
record      equ 0x8000
chunk       equ 0x1000          ; a segment

        cli
        cld
        xor ax, ax
        mov ds, ax
        mov es, ax
        mov ss, ax
        mov sp, 0x7c00
        mov [drive], dl
        mov ah, 0x41
        mov bx, 0x55aa
        int 0x13
        jnc .disk
        mov byte [drive], 0     ; there is none, so only count
.disk:  mov dword [number], 0

; A look into protected mode and back gives a segment that spans all memory. Fill 6 MiB of it from
; 1 MiB on, so that moving this guest takes a while.
        lgdt [segments.pointer]
        mov eax, cr0
        or al, 1
        mov cr0, eax
        mov bx, 8
        mov es, bx
        and al, 0xfe
        mov cr0, eax
        mov edi, 0x100000
        mov ecx, 0x180000
        mov eax, ecx
        a32 rep stosd

        in al, 0xa1             ; no interrupt for the power button, but a bit that tells
        or al, 2
        out 0xa1, al
        mov dx, PM_ENABLE
        mov ax, 0x100
        out dx, ax
        rdtsc
        mov [life], eax
        sti

; Go on from the largest number that is on the disk.
        mov ax, chunk
        mov es, ax
        mov byte [packet.sectors], CHUNK
        mov word [packet.segment], ax
        mov word [packet.offset], 0
        mov byte [packet.first], 1
.read:  mov ah, 0x42
        call disk
        xor di, di
        mov cx, CHUNK
.look:  cmp dword [es:di], MAGIC
        jne .next
        mov eax, [es:di + 4]
        cmp eax, [number]
        jbe .next
        mov [number], eax
.next:  add di, 512
        loop .look
        add word [packet.first], CHUNK
        cmp word [packet.first], RING
        jb .read

        mov si, from
        call print
        call print_number

        push ds
        pop es
        mov byte [packet.sectors], 1
        mov word [packet.segment], 0
        mov word [packet.offset], record

; One more: make the record, write it, and when it is on the disk, tell.
count:  inc dword [number]
        mov di, record
        mov eax, MAGIC
        stosd
        mov eax, [number]
        stosd
        mov eax, [life]
        stosd
        xor eax, [number]
        mov cx, 125             ; the rest of the sector follows from these two
.fill:  imul eax, eax, 1664525
        add eax, 1013904223
        stosd
        loop .fill

        mov eax, [number]
        dec eax
        xor edx, edx
        mov ebx, RING
        div ebx
        inc dx
        mov [packet.first], dx
        mov ax, 0x4300
        call disk
        call print_number
        call rest
        jmp count

; Wait for the clock, which ticks 18 times a second; turn off if the power button was pressed.
rest:   hlt
        mov dx, PCI_DOWN
        in eax, dx
        test eax, eax
        jz .kept
        mov dl, PCI_EJECT & 0xff
        out dx, eax
.kept:  mov dx, PM_STATUS
        in ax, dx
        test ah, 1
        jz .on
        mov dx, PM_CONTROL
        mov ax, 0x2000
        out dx, ax
.on:    ret

; Have the firmware do what ax says with the packet, until it succeeds. It notes there how many
; sectors it did, which after a failure are none.
disk:   mov dl, [drive]
        test dl, dl
        jz .done
        mov si, packet
        push ax
        push word [packet.sectors]
        int 0x13
        pop word [packet.sectors]
        pop ax
        jnc .done
        push ax
        mov si, failed
        call print
        call rest
        pop ax
        jmp disk
.done:  ret

print_number:
        mov ebx, [number]
        mov cx, 8
.digit: rol ebx, 4
        mov al, bl
        and al, 15
        cmp al, 10              ; a digit as a character
        sbb al, 0x69
        das
        call put
        loop .digit
        mov al, 10
put:    mov dx, SERIAL
        out dx, al
        ret

; Print the text at si, which ends with 0.
print:  lodsb
        test al, al
        jz .end
        call put
        jmp print
.end:   ret

from:   db "going on from ", 0
failed: db "the disk failed", 10, 0

align 8
segments:
        dq 0                    ; none
        dq 0x00cf92000000ffff   ; all memory
.pointer:
        dw $ - segments - 1
        dd segments

packet: dw 16                   ; its size
.sectors:
        dw 0
.offset:
        dw 0
.segment:
        dw 0
.first: dq 0

        times 0x1f1 - ($ - $$) db 0
        db 1                    ; as a kernel: sectors after this one
        times 510 - ($ - $$) db 0
        dw 0xaa55

; As a kernel it is started here, with ds where the first sector is. Go on as a boot sector does.
        cld
        xor si, si
        mov es, si
        mov di, 0x7c00
        mov cx, 256
        rep movsw
        mov dl, 0x80            ; the first disk
        jmp 0:0x7c00
        times 1024 - ($ - $$) db 0
