"""Programs on emulated Cortex-M machines: start-up code, layouts, and counts of instructions.

QEMU with ``-icount shift=0`` advances its clock by one nanosecond per instruction. SysTick counts
at 25 MHz, so one tick stands for 40 instructions. Counts are the same on any host; they are not
cycles.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smelt.targets.c.cpus import CPUS, HARD

VECTORS = """
extern unsigned long top_of_stack[];
extern unsigned char data_start[], data_end[], data_from[], bss_start[], bss_end[];
int main(void);
void start(void);
void start(void)
{
    for (unsigned char *to = data_start, *from = data_from; to != data_end; ++to, ++from)
        *to = *from;
    for (volatile unsigned char *to = bss_start; to != bss_end; ++to)
        *to = 0;
    FPU
    unsigned long block[2] = {0x20026, (unsigned long)main()};
    register unsigned long call __asm__("r0") = 0x20;
    register unsigned long *with __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : : "r"(call), "r"(with) : "memory");
    for (;;)
        ;
}
__attribute__((section(".vectors"), used))
static void *const vectors[16] = {top_of_stack, (void *)start};
"""
"""What a Cortex-M does before ``main``, and how it tells QEMU the result (semihosting)."""

FPU = "*(volatile unsigned long *)0xE000ED88 |= 0xFul << 20;"
LAYOUT = """
MEMORY { FLASH (rx) : ORIGIN = %s, LENGTH = %s RAM (rwx) : ORIGIN = 0x20000000, LENGTH = %s }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.ARM.exidx*) . = ALIGN(8); } > FLASH
  data_from = LOADADDR(.data);
  .data : { data_start = .; *(.data*) . = ALIGN(8); data_end = .; } > RAM AT > FLASH
  .bss (NOLOAD) : { bss_start = .; *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; } > RAM
  top_of_stack = ORIGIN(RAM) + LENGTH(RAM);
}
"""

TICKS = """
#include <stdint.h>
#include <stddef.h>
#define SYSTICK ((volatile uint32_t *)0xE000E010)
static void print(const char *text)
{
    register unsigned long call __asm__("r0") = 4;
    register const char *with __asm__("r1") = text;
    __asm__ volatile("bkpt 0xab" : "+r"(call) : "r"(with) : "memory");
}
static void print_number(uint32_t number)
{
    char text[12], *at = text + 11;
    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    print(at);
    print("\\n");
}
static void start_ticks(void)
{
    SYSTICK[1] = 0xFFFFFF;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    while (SYSTICK[2] == 0) /* until the first tick loads the counter */
        ;
}
static uint32_t ticks(void)
{
    return 0xFFFFFF - SYSTICK[2];
}
"""
"""C functions that print by semihosting and read the ticks since ``start_ticks``."""

INSTRUCTIONS_PER_TICK = 40


@dataclass(frozen=True, slots=True)
class Board:
    """An emulated machine, the compiler's flags for its CPU, where flash starts, and its sizes."""

    machine: str
    flags: tuple[str, ...]
    flash: str = "4M"
    ram: str = "4M"
    flash_start: str = "0"

    @property
    def has_fpu(self) -> bool:
        """True if the flags use a floating-point unit, which start-up code switches on."""
        return HARD in self.flags


BOARDS = {
    "cortex-m0": Board("microbit", ("-mcpu=cortex-m0",), "256K", "16K"),
    "cortex-m3": Board("mps2-an385", CPUS["cortex-m3"].flags),
    "cortex-m4": Board("mps2-an386", CPUS["cortex-m4"].flags),
    "cortex-m7": Board("mps2-an500", CPUS["cortex-m7"].flags),
    "cortex-m55": Board("mps3-an547", ("-mcpu=cortex-m55", HARD), "512K", "2M"),
}
"""By the value of the option ``cpu``."""


def compiler_command(board: Board, level: str = "-O2") -> list[str]:
    """Return the command that compiles for ``board``."""
    return ["arm-none-eabi-gcc", "-mthumb", *board.flags, "-std=gnu99", level]


def link(board: Board, folder: Path, files: Sequence[str], level: str = "-O2") -> None:
    """Write ``run.elf`` into ``folder`` from sources and objects, with start-up code."""
    start = VECTORS.replace("FPU", FPU if board.has_fpu else "")
    (folder / "start.c").write_text(start)
    (folder / "layout.ld").write_text(LAYOUT % (board.flash_start, board.flash, board.ram))
    ends = ["-nostartfiles", "-T", "layout.ld", "-lm", "-lc", "-lgcc", "-o", "run.elf"]
    command = [*compiler_command(board, level), "-w", *files, "start.c", *ends]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


def emulator_command(board: Board) -> list[str]:
    """Return the command that runs ``run.elf`` and counts instructions."""
    head = ["qemu-system-arm", "-M", board.machine, "-display", "none", "-serial", "none"]
    head += ["-monitor", "none", "-semihosting", "-icount", "shift=0"]
    return [*head, "-kernel", "run.elf"]
