"""Documents are encrypted at rest, and nothing but what was written comes back.

In a folder and in a bucket alike.
"""

import hashlib
import os
from collections.abc import Callable

import pytest

from appliance.documents.document_files import MAGIC, name_of
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import BlobMaintenance
from tests.support.factories.document_storage import DocumentStorage
from tests.support.factories.fakes import FixedDocumentKeys

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")
TWO = IntegratorId("00000000-0000-4000-8000-000000000002")
MIB = 1_048_576
FIRST = MIB - 40 - 16
"""Bytes of a document in the first segment of its file."""
REST = MIB - 16
"""Bytes in each that follows."""
HEAD = len(MAGIC) + 40
PDF = b"%PDF-1.7\n" + b"in clear " * 350_000
"""Of four segments."""

Harm = Callable[[bytes], bytes]


@pytest.fixture
def keys() -> FixedDocumentKeys:
    """A key for each integrator."""
    return FixedDocumentKeys()


@pytest.fixture
def documents(
    document_storage: DocumentStorage, keys: FixedDocumentKeys
) -> BlobMaintenance:
    """An empty store."""
    return document_storage.store_with(keys)


async def read_whole(documents: BlobMaintenance, sha256: str) -> bytes:
    """A document as a download reads it."""
    stream = await documents.stream(ONE, sha256)
    content = b"".join([piece async for piece in stream.pieces])
    assert len(content) == stream.size_bytes
    return content


async def read_part(
    documents: BlobMaintenance, sha256: str, start: int, end: int
) -> bytes:
    """Some of a document as a reader of one page takes it."""
    stream = await documents.stream(ONE, sha256)
    assert stream.part is not None
    return b"".join([piece async for piece in stream.part(start, end)])


@pytest.mark.parametrize(
    "size",
    [0, 1, FIRST - 1, FIRST, FIRST + 1, FIRST + REST, FIRST + REST + 1, 3 * MIB],
)
async def test_any_size_reads_back(documents: BlobMaintenance, size: int) -> None:
    """Whole and in pieces, up to and past each segment's end."""
    content = os.urandom(size)

    sha256 = await documents.put(ONE, content)

    assert sha256 == hashlib.sha256(content).hexdigest()
    assert await documents.get(ONE, sha256) == content
    assert await read_whole(documents, sha256) == content


EDGES = (0, 1, FIRST - 1, FIRST, FIRST + 1, FIRST + REST, FIRST + REST + 1)
"""Offsets about which the segments of a file meet."""


@pytest.mark.parametrize("size", [1, FIRST, FIRST + 1, FIRST + REST, 3 * MIB])
async def test_any_range_reads_back(documents: BlobMaintenance, size: int) -> None:
    """From and to each segment's end, and nothing more than was asked for."""
    content = os.urandom(size)
    sha256 = await documents.put(ONE, content)
    offsets = sorted({min(each, size) for each in (*EDGES, size - 1, size)})

    for start in offsets[:-1]:
        for end in (each for each in offsets if each > start):
            assert await read_part(documents, sha256, start, end) == content[start:end]


async def test_parts_are_one_document(documents: BlobMaintenance) -> None:
    """As they come one after the other, wherever they meet."""
    content = os.urandom(3 * MIB)
    parts = [content[:5], content[5:FIRST], b"", content[FIRST:MIB], content[MIB:]]

    sha256 = await documents.put(ONE, *parts)

    assert await documents.get(ONE, sha256) == content


async def test_nothing_stands_in_clear(
    documents: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """No byte of it, and no two files of the same bytes alike."""
    sha256 = await documents.put(ONE, PDF)
    await documents.put(TWO, PDF)

    one, two = (document_storage.read(name_of(each, sha256)) for each in (ONE, TWO))
    assert one.startswith(MAGIC)
    assert b"in clear" not in one + two
    assert one[HEAD : HEAD + 64] != two[HEAD : HEAD + 64]


def flipped(at: int) -> Harm:
    """One bit is another."""

    def harm(file: bytes) -> bytes:
        changed = bytearray(file)
        changed[at] ^= 1
        return bytes(changed)

    return harm


def without_segment(number: int) -> Harm:
    """A segment is missing."""

    def harm(file: bytes) -> bytes:
        start = len(MAGIC) + number * MIB
        return file[:start] + file[start + MIB :]

    return harm


def two_swapped(file: bytes) -> bytes:
    """The second and the third segment have changed places."""
    second, third = len(MAGIC) + MIB, len(MAGIC) + 2 * MIB
    end = third + MIB
    return file[:second] + file[third:end] + file[second:third] + file[end:]


@pytest.mark.parametrize(
    "harm",
    [
        flipped(0),
        flipped(len(MAGIC)),
        flipped(len(MAGIC) + 1),
        flipped(HEAD - 1),
        flipped(HEAD),
        flipped(2 * MIB),
        flipped(-1),
        lambda file: file[:-1],
        lambda file: file[: len(MAGIC) + 2 * MIB],
        lambda file: file[:HEAD],
        lambda file: file[: HEAD - 1],
        lambda file: file + b"x",
        lambda file: file + file[-100:],
        without_segment(1),
        without_segment(2),
        two_swapped,
    ],
)
async def test_harmed_file_does_not_open(
    documents: BlobMaintenance, document_storage: DocumentStorage, harm: Harm
) -> None:
    """Cut, grown, put together anew or changed anywhere: neither read way gives it."""
    sha256 = await documents.put(ONE, PDF)
    name = name_of(ONE, sha256)
    document_storage.write(name, harm(document_storage.read(name)))

    for read in (documents.get(ONE, sha256), read_whole(documents, sha256)):
        with pytest.raises(ApplianceError) as caught:
            await read
        assert caught.value.code is ErrorCode.DOCUMENT_DAMAGED


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file[:-1],
        lambda file: file[: len(MAGIC) + 2 * MIB],
        lambda file: file + b"x",
        without_segment(1),
        without_segment(2),
        two_swapped,
    ],
)
async def test_range_of_a_file_of_another_length_or_order_does_not_open(
    documents: BlobMaintenance, document_storage: DocumentStorage, harm: Harm
) -> None:
    """Not even where its own segment is right: the size told with it would be wrong."""
    sha256 = await documents.put(ONE, PDF)
    name = name_of(ONE, sha256)
    document_storage.write(name, harm(document_storage.read(name)))

    with pytest.raises(ApplianceError) as caught:
        await read_part(documents, sha256, FIRST + 1, FIRST + REST + 2)

    assert caught.value.code is ErrorCode.DOCUMENT_DAMAGED


async def test_range_is_refused_for_its_own_segment_alone(
    documents: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """One bit in the second segment: the first is read, the second is not."""
    sha256 = await documents.put(ONE, PDF)
    name = name_of(ONE, sha256)
    document_storage.write(name, flipped(2 * MIB - 9)(document_storage.read(name)))

    assert await read_part(documents, sha256, 5, FIRST) == PDF[5:FIRST]
    with pytest.raises(ApplianceError):
        await read_part(documents, sha256, FIRST, FIRST + 1)


async def test_stream_gives_nothing_past_what_is_right(
    documents: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """Pieces before the harm come; of the harmed one and after it, nothing."""
    sha256 = await documents.put(ONE, PDF)
    name = name_of(ONE, sha256)
    document_storage.write(name, flipped(-1)(document_storage.read(name)))

    stream = await documents.stream(ONE, sha256)
    given = b""
    refused = False
    try:
        async for piece in stream.pieces:
            given += piece
    except ApplianceError:
        refused = True

    assert refused
    assert 0 < len(given) < len(PDF)
    assert PDF.startswith(given)


async def test_file_in_anothers_place_does_not_open(
    documents: BlobMaintenance,
    document_storage: DocumentStorage,
    keys: FixedDocumentKeys,
) -> None:
    """Not another document's, nor another integrator's, even under one key."""
    sha256 = await documents.put(ONE, PDF)
    other = await documents.put(ONE, PDF + b"\n")
    file = document_storage.read(name_of(ONE, other))
    document_storage.write(name_of(ONE, sha256), file)
    document_storage.write(name_of(TWO, other), file)

    async def same(integrator: IntegratorId) -> bytes:
        del integrator
        return hashlib.sha256(ONE.encode()).digest()

    keys.make = same  # type: ignore[method-assign]

    for integrator, wanted in ((ONE, sha256), (TWO, other)):
        with pytest.raises(ApplianceError) as caught:
            await documents.get(integrator, wanted)
        assert caught.value.code is ErrorCode.DOCUMENT_DAMAGED
    assert await documents.get(ONE, other) == PDF + b"\n"


async def test_document_of_before_is_read_and_encrypted(
    documents: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """A plain file opens as it is; encrypting it twice is encrypting it once."""
    sha256 = hashlib.sha256(PDF).hexdigest()
    name = name_of(ONE, sha256)
    document_storage.write(name, PDF)

    assert await documents.get(ONE, sha256) == PDF
    assert await read_whole(documents, sha256) == PDF
    # A part of it could not be checked.
    assert (await documents.stream(ONE, sha256)).part is None
    assert await documents.encrypt(ONE, sha256) is True
    assert await read_part(documents, sha256, 3, 9) == PDF[3:9]
    assert await documents.encrypt(ONE, sha256) is False

    assert document_storage.read(name).startswith(MAGIC)
    assert await documents.get(ONE, sha256) == PDF


@pytest.mark.parametrize("altered", [b"", PDF[:-1], PDF + b"\n"])
async def test_altered_document_of_before_is_not_given_out(
    documents: BlobMaintenance, document_storage: DocumentStorage, altered: bytes
) -> None:
    """What has no key is known by its hash, before the first byte is given."""
    sha256 = hashlib.sha256(PDF).hexdigest()
    name = name_of(ONE, sha256)
    document_storage.write(name, altered)

    with pytest.raises(ApplianceError):
        await documents.get(ONE, sha256)
    with pytest.raises(ApplianceError):
        await documents.stream(ONE, sha256)
    with pytest.raises(ApplianceError):
        await documents.encrypt(ONE, sha256)
    assert document_storage.read(name) == altered


async def test_shredded_integrators_documents_do_not_open(
    documents: BlobMaintenance, keys: FixedDocumentKeys
) -> None:
    """Without its key, none of its own; others' open as before."""
    sha256 = await documents.put(ONE, PDF)
    await documents.put(TWO, PDF)
    keys.shredded.add(ONE)

    with pytest.raises(ApplianceError) as caught:
        await documents.get(ONE, sha256)

    assert caught.value.code is ErrorCode.DOCUMENT_DAMAGED
    assert await documents.get(TWO, sha256) == PDF
