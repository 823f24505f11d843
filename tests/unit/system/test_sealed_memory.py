"""Documents in memory that nobody can change: alone, and several in one."""

import hashlib
import os

import pytest

from appliance.system.sealed_memory import MemoryWriter, SealedMemory

TEXTS = (b"uno" * 1000, b"dos", b"tres" * 100_000)


def memories() -> list[SealedMemory]:
    """Those, in one."""
    writer = MemoryWriter("document")
    for text in TEXTS:
        writer.write(text[:2])
        writer.write(text[2:])
        writer.end_document()
    return writer.sealed_documents()


def test_each_of_several_is_its_own() -> None:
    """Its size, its hash, its bytes, and no byte of the next one."""
    for memory, text in zip(memories(), TEXTS, strict=True):
        assert memory.size_bytes == len(text)
        assert memory.sha256 == hashlib.sha256(text).hexdigest()
        assert bytes(memory) == text
        assert memory.read(1, 10**9) == text[1:]
        assert memory.read(len(text), 5) == b""


def test_descriptor_has_one_alone() -> None:
    """Sealed, and closed after its use."""
    for memory, text in zip(memories(), TEXTS, strict=True):
        with memory.opened() as descriptor:
            assert os.fstat(descriptor).st_size == len(text)
            assert os.pread(descriptor, len(text), 0) == text
            with pytest.raises(PermissionError):
                os.pwrite(descriptor, b"x", 0)
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(descriptor)


def test_one_alone_is_handed_on_as_it_is() -> None:
    """Without a copy."""
    writer = MemoryWriter("document")
    writer.write(TEXTS[0])
    memory = writer.sealed()
    with memory.opened() as first, memory.opened() as second:
        assert first == second
    assert bytes(memory) == TEXTS[0]
