"""The heap that `rubrica up` shares with the roles that it forks.

Children share the parent's pages until somebody writes to them. What they allocate
would go into the gaps that loading left, a gap or two on each of thousands of pages:
each such page becomes a copy, for the sake of some bytes. So the gaps are filled before
the fork, and what children allocate stands together, on pages of their own.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import ClassVar, Final

_POOL: Final = 16_384
"""CPython's pools, each of blocks of one size (`obmalloc.c`, from 3.10 on)."""
_POOL_HEAD: Final = 48
_STEP: Final = 16
_LARGEST_BLOCK: Final = 512
"""Larger objects are the C library's."""
_BYTES_HEAD: Final = sys.getsizeof(b"")
_NUMBER: Final = 32
"""What an int takes."""
_LOOP: Final = 16
"""More blocks of that size than the loop that fills them has itself at a time."""
_MOST: Final = 8 << 20
"""Of one size, in bytes; after a start there are some tens of thousands."""
_LARGEST_GAP: Final = 131_072
"""Of the C library; it maps larger ones by themselves."""

_fillings: Final[list[object]] = []
"""What fills the gaps, for as long as this process lives."""


def share_heap() -> None:
    """Have children write to as few of this process's pages as they can.

    Call it once, when all is loaded and no thread runs.
    """
    gc.unfreeze()  # what was frozen as it was loaded has garbage among it
    gc.collect()
    for size in range(_STEP, _LARGEST_BLOCK + 1, _STEP):
        _fillings.append(_fill_pools(size))
    _fill_library()
    # A collection of theirs leaves alone what is frozen here; and a cache of attributes
    # that is empty lets go of no name that another module's classes were looked up by.
    gc.freeze()
    sys._clear_type_cache()  # noqa: SLF001 (documented by that name)


def _fill_pools(size: int) -> list[object]:
    """Take the free blocks of one size, until they come from a pool that had none.

    Args:
        size: of a block, in bytes.
    """
    make = _maker(size)
    # Pools with gaps come first: one that is ours from end to end had no block in use.
    whole = (_POOL - _POOL_HEAD) // size - (_LOOP if size == _NUMBER else 0)
    taken: list[object] = []
    pool = of_pool = 0
    while of_pool < whole:
        if len(taken) * size > _MOST:
            return []  # memory that is laid out otherwise, as PYTHONMALLOC has it
        block = make()
        taken.append(block)
        this = id(block) // _POOL
        of_pool = of_pool + 1 if this == pool else 1
        pool = this
    del taken[-of_pool:]
    return taken


def _maker(size: int) -> Callable[[], object]:
    """What makes objects that take one block of a size and nothing else."""
    if size == _STEP:
        return object
    if size == _NUMBER:
        numbers = iter(range(1 << 20, 1 << 29))
        return lambda: next(numbers)
    return lambda: bytes(size - _BYTES_HEAD)


class _Mallinfo(ctypes.Structure):
    """What mallinfo2(3) tells."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _fill_library() -> None:
    """Take the free pieces of the C library's heap, from the largest to the least.

    A C library that does not tell how far its heap goes is left alone.
    """
    library = ctypes.CDLL(None)
    malloc, free, sbrk = library.malloc, library.free, library.sbrk
    try:
        library.mallinfo2.restype = _Mallinfo
        unused = library.mallinfo2().keepcost
    except AttributeError:
        return
    malloc.restype = sbrk.restype = ctypes.c_void_p
    malloc.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    sbrk.argtypes = [ctypes.c_ssize_t]
    never_used = sbrk(0) - unused
    for size in range(_LARGEST_GAP, _LARGEST_BLOCK, -_STEP):
        while (at := malloc(size)) and at < never_used:
            pass
        free(at)
