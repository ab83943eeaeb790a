"""A program with words of another size than its kernel's: what of a fetch is still right.

Each inner load of a fetch reads a long of the kernel, and so does ``$stackN`` (kernel,
kernel/trace/trace_probe_tmpl.h and trace_uprobe.c; measured with a 32-bit program on 6.18).
"""

from __future__ import annotations

from fetchc.diag.model import Diagnostic
from fetchc.ir.nodes import Array, Deref, StackEntry, Symbol, Text, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.nodes import Fetch
    from fetchc.target.kernel_versions import Kernel
    from fetchc.target.machines import Architecture

__all__ = ["misread"]


def misread(fetch: Fetch, machine: Architecture, kernel: Kernel) -> Diagnostic | None:
    """What ``kernel`` gets wrong in a program of ``machine`` for the size of words, else None."""
    if machine.word_bytes == kernel.word_bytes:
        return None
    if machine.word_bytes > kernel.word_bytes:
        return Diagnostic(
            "FC0506",
            f"a {8 * kernel.word_bytes}-bit kernel runs no programs for {machine.name}",
            help=f"name the kernel that does: `--kernel {kernel.name}`",
        )
    bits = 8 * machine.word_bytes
    narrow = f"a {bits}-bit kernel, if it runs the program: `--kernel {kernel.name}/{bits}`"
    if not machine.on_wide_kernel:
        return Diagnostic(
            "FC0206",
            f"a {8 * kernel.word_bytes}-bit kernel takes no probes of programs for {machine.name}",
            help=f"name {narrow}",
        )
    value, store = fetch.value, fetch.store
    steps = isinstance(value, Deref) and isinstance(value.base, Deref)
    texts = isinstance(store, Array) and isinstance(store.element, Text)
    if steps or texts:
        return Diagnostic(
            "FC0408",
            f"a {8 * kernel.word_bytes}-bit kernel follows pointers of {kernel.word_bytes} bytes, "
            f"this program's have {machine.word_bytes}",
            notes=("it would take in the bytes next to the pointer",),
            help=f"fetch the pointer itself, or name {narrow}",
        )
    while isinstance(value, Deref):
        value = value.base
    if isinstance(value, StackEntry) or (isinstance(store, Word | Symbol) and fetch.value != value):
        return Diagnostic(
            "FC0408",
            f"a {8 * kernel.word_bytes}-bit kernel counts the stack in words of "
            f"{kernel.word_bytes} bytes, this program in words of {machine.word_bytes}",
            help=f"fetch memory with its size, or name {narrow}",
        )
    return None
