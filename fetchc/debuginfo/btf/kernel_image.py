"""Finds the BTF inside a bootable kernel image: bzImage, Image, compressed or not.

An x86 bzImage carries the compressed ELF file of the kernel after its set-up code; arm64 and
riscv64 boot a flat Image, where the BTF is found by its header.
Source: Documentation/arch/x86/boot.rst; scripts/extract-vmlinux of Linux.
"""

from __future__ import annotations

from fetchc.ceilings import HELP, kernel_image_size
from fetchc.debuginfo.btf.btf_format import MAGIC
from fetchc.debuginfo.byte_reader import decode_number, encode_number
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.debuginfo.elf.headers import Buffer

    Unpacker = Callable[[str, bytes], bytes]

__all__ = ["btf_of_image"]

# Offset and magic of flat images. Source: Documentation/arch of Linux: arm64/booting.rst,
# riscv/boot-image-header.rst.
FLAT = ((0x38, b"ARM\x64", "aarch64"), (0x38, b"RSC\x05", "riscv64"))
GZIP, XZ, LZ4, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x02\x21\x4c\x18", b"\x28\xb5\x2f\xfd"


def btf_of_image(path: str, data: Buffer) -> tuple[bytes, str | None] | None:
    """The BTF of the image ``data`` and its machine (key of targets/arch) where the image tells.

    None where it is no kernel's or has none.
    """
    whole = bytes(data)
    payload = _of_bzimage(whole)
    plain = _unpacked(path, whole if payload is None else payload)
    found = _largest(plain)
    if found is None:
        return None
    if payload is not None:
        return found, "x86_64"
    return found, next((key for at, magic, key in FLAT if plain[at:].startswith(magic)), None)


def _of_bzimage(data: bytes) -> bytes | None:
    if data[0x202:0x206] != b"HdrS" or decode_number(data[0x206:0x208], True) < 0x208:
        return None
    start = ((data[0x1F1] or 4) + 1) * 512 + decode_number(data[0x248:0x24C], True)
    return data[start : start + decode_number(data[0x24C:0x250], True)]


def _unpacked(path: str, data: bytes) -> bytes:
    for magic, unpack in UNPACKERS.items():
        if data.startswith(magic):
            return unpack(path, data)
    return data


def _broken(path: str, how: str, why: object) -> DebugInfoError:
    return DebugInfoError("FC0904", path, f"damaged {how} stream ({why})", "kernel image")


def _too_large(path: str) -> DebugInfoError:
    what = f"it unpacks to more than {kernel_image_size() >> 20:,} MB"
    return DebugInfoError("FC0905", path, what, "kernel image", help=HELP)


def _gzip(path: str, data: bytes) -> bytes:
    import zlib

    unpacker, most = zlib.decompressobj(31), kernel_image_size()
    try:
        image = unpacker.decompress(data, most)
        if len(image) == most and unpacker.decompress(unpacker.unconsumed_tail, 1):
            raise _too_large(path)
        return image
    except zlib.error as broken:
        raise _broken(path, "gzip", broken) from None


def _xz(path: str, data: bytes) -> bytes:
    import lzma

    most = kernel_image_size()
    unpacker = lzma.LZMADecompressor(memlimit=most)
    try:
        image = unpacker.decompress(data, most)
        if len(image) == most and not unpacker.eof and unpacker.decompress(b"", 1):
            raise _too_large(path)
        return image
    except lzma.LZMAError as broken:
        raise _broken(path, "xz", broken) from None


def _zstd(path: str, data: bytes) -> bytes:
    module, most = _module(path, "zstandard", "zstd"), kernel_image_size()
    try:
        with module.ZstdDecompressor().stream_reader(data) as reader:
            image: bytes = reader.read(most)
            if len(image) == most and reader.read(1):
                raise _too_large(path)
    except module.ZstdError as broken:
        raise _broken(path, "zstd", broken) from None
    return image


def _lz4(path: str, data: bytes) -> bytes:
    # The legacy frame of `lz4 -l`: blocks of up to 8 MiB, each after its size; the last word is
    # the kernel's, the size of the whole.
    module = _module(path, "lz4.block", "lz4")
    image, at = bytearray(), 4
    while at + 4 <= len(data) - 4:
        size = decode_number(data[at : at + 4], True)
        block = data[at + 4 : at + 4 + size]
        try:
            image += module.decompress(block, uncompressed_size=1 << 23)
        except (module.LZ4BlockError, ValueError) as broken:
            raise _broken(path, "lz4", broken) from None
        if len(image) > kernel_image_size():
            raise _too_large(path)
        at += 4 + size
    return bytes(image)


def _module(path: str, name: str, how: str) -> Any:
    from importlib import import_module

    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ImportError:
        raise DebugInfoError(
            "FC0905",
            path,
            f"compressed with {how}, which needs the Python module {package}",
            help=f"install {package}, or name the BTF itself: /sys/kernel/btf/vmlinux",
        ) from None


UNPACKERS: dict[bytes, Unpacker] = {GZIP: _gzip, XZ: _xz, ZSTD: _zstd, LZ4: _lz4}


def _largest(data: bytes) -> bytes | None:
    """The largest run of bytes that has BTF's header and adds up."""
    best: bytes | None = None
    for little in (True, False):
        magic = encode_number(MAGIC, 2, little) + b"\x01"
        at = data.find(magic)
        while at >= 0:
            header, types, size, names, length = [
                decode_number(data[at + field : at + field + 4], little)
                for field in range(4, 24, 4)
            ]
            end = at + header + names + length
            adds_up = 24 <= header <= 64 and not types and names == size and length
            if adds_up and end <= len(data) and not data[at + header + names]:
                found = data[at:end]
                if best is None or len(found) > len(best):
                    best = found
            at = data.find(magic, at + 1)
    return best
