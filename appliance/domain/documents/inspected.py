"""What is known of a PDF after the sandbox has looked at it.

Plain facts that are stored with the document, so that geometry and refusals
need no parser later. Nothing here reads a PDF.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import groupby, repeat
from typing import Any, Final, NamedTuple, cast

from appliance.domain.ids import DocumentId
from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.text.untrusted_json import boolean, docmdp, rect, text, texts

INSPECTOR_VERSION = 11
"""Raised whenever the same file would be described, or refused, differently."""
MARKS_KEPT = 1000
"""Most signature fields whose place is told."""
Rect = tuple[float, float, float, float]
"""x0 < x1, y0 < y1, in unrotated user space."""
FIELDS_KEPT: Final = 1000
"""Most signature fields of a document that are told of."""
NAME_LENGTH: Final = 256
"""Longest name, in characters, of a field that is told of."""
_CERTIFYING: Final = frozenset({0, 1, 2, 3})


class FindingKind(StrEnum):
    """What a signer is told about a document before signing it.

    Source: docs/documents.md, which says how each is found.
    """

    JAVASCRIPT = "javascript"
    LAUNCH_ACTION = "launch_action"
    EMBEDDED_FILES = "embedded_files"
    RICH_MEDIA = "rich_media"
    EXTERNAL_LINK_ACTION = "external_link_action"
    """GoToR or GoToE actions, or a web address that opens without a click."""
    FORM_SUBMISSION = "form_submission"
    """SubmitForm or ImportData actions."""
    XFA_STATIC = "xfa_static"
    HYBRID_XREF = "hybrid_xref"
    ENCRYPTED_EMPTY_PASSWORD = "encrypted_empty_password"  # noqa: S105 (a word)
    SIGNING_RESTRICTED = "signing_restricted"
    """Encrypted with permissions that do not grant changing or signing it."""
    DAMAGED = "damaged"
    """Damaged, and signed as it is."""
    REPAIRED = "repaired"
    """A copy written anew of a file that was damaged, or had more than one reading."""
    REPAIRED_LOOK = "repaired_look"
    """Such a copy, of which some page is drawn otherwise than the original was."""
    COUNT_LIES = "count_lies"
    """`/Count` of the page tree differs from the pages found by walking."""
    USAGE_RIGHTS = "usage_rights"
    """Rights that a producer's signature grants in Adobe Reader (`/UR3` or `/UR`)."""
    ALTERNATE_IMAGES = "alternate_images"
    """Images with others that a program may print or show in their place."""
    MISSING_APPEARANCES = "missing_appearances"
    """Annotations or filled fields that each program draws as it likes."""
    UNEMBEDDED_FONTS = "unembedded_fonts"
    """Text in a font that is neither in the file nor one of the standard 14."""
    DRAWN_DIFFERENTLY = "drawn_differently"
    """Content that common programs are known to draw differently."""
    FIELD_SHOWS_OTHER = "field_shows_other"
    """Filled fields that show another thing than their value."""
    LAYERS = "layers"
    HIDDEN_ANNOTATIONS = "hidden_annotations"
    """Annotations or fields that are there and not shown."""
    OFF_PAGE_CONTENT = "off_page_content"
    """Annotations or fields beside the visible page, or on no page."""
    APPEARANCES_LEFT_OPEN = "appearances_left_open"
    """Fields whose look the file leaves to the program that shows it."""
    OVERLAPPING_ANNOTATIONS = "overlapping_annotations"
    """Fields or opaque annotations that cover one another."""
    COVERED_TEXT = "covered_text"
    """Text of a page that annotations or fields take out of sight."""
    OFF_PAGE_TEXT = "off_page_text"
    """Text of a page beside what is visible of it."""
    HIDDEN_LAYERS = "hidden_layers"
    """Layers that are not shown at first, or are shown on screen or paper alone."""
    REPLACED_CONTENT = "replaced_content"
    """A page's content that a later revision replaced, and that is still there."""
    UNSHOWN_PAGES = "unshown_pages"
    """Pages that are in the file and not among those of the document."""
    UNEXAMINED_PARTS = "unexamined_parts"
    """Objects, earlier revisions or pages that cannot be read, or not in the time there
    is: what else could be told of them is not known."""
    SIGNATURE_BROKEN = "signature_broken"
    """An earlier signature whose bytes, or what it covers, were changed."""
    SIGNATURE_UNCHECKED = "signature_unchecked"
    """An earlier signature of which that could not be checked."""


_OF_COPIES: Final = frozenset({FindingKind.REPAIRED, FindingKind.REPAIRED_LOOK})


class Damage(StrEnum):
    """What was wrong with a file that was repaired."""

    SURROUNDINGS = "surroundings"
    """Bytes before the start of the PDF or after its end."""
    CROSS_REFERENCES = "cross_references"
    """The table of where the objects are, or its trailer."""
    PAGE_TREE = "page_tree"
    STREAMS = "streams"
    """A stream's length."""
    METADATA = "metadata"
    """Metadata (XMP) that is no well-formed XML, or no XMP."""
    FORM_FIELDS = "form_fields"
    """Fields of one name, or a form that is not as one has to be."""
    SYNTAX = "syntax"
    """Something else that strict reading refuses."""
    AMBIGUOUS = "ambiguous"
    """Something that programs read differently."""
    UNVERIFIABLE = "unverifiable"
    """Something by which programs would call a signature on it invalid."""
    PAGES = "pages"
    """Fewer pages stated than there are: some programs showed no more."""
    USAGE_RIGHTS = "usage_rights"
    """Rights of one vendor's reader, which any change ends (`/Perms`)."""
    LOOK = "look"
    """A page that PDFium draws otherwise in the copy."""
    LOOK_UNKNOWN = "look_unknown"
    """A page that was not compared: no time was left, or PDFium could not draw it."""


class CameDocument(NamedTuple):
    """A document that is kept, and what it came as.

    The same bytes may come as they are, and as the copy of several damaged files.
    """

    id: DocumentId
    original_sha256: str | None
    """Of the damaged file, hex; empty for a document that came as it is; None: what
    it came as first, in rows of versions before 0006 of the tables."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Where a repaired copy comes from; the original is kept beside it."""

    original_sha256: str
    """Of the file as it came, hex."""
    damage: tuple[Damage, ...]
    """Sorted, without repeats, at least one."""


@dataclass(frozen=True, slots=True)
class RepairedCopy:
    """A file as the sandbox wrote it anew."""

    pdf: bytes = field(repr=False)
    damage: tuple[Damage, ...]
    """Sorted, without repeats; empty where nothing was wrong that the repair knows."""


@dataclass(frozen=True, slots=True)
class PageBox:
    """The visible box of one page, in user space, and its rotation.

    Source: ISO 32000-2, 7.7.3.3 (CropBox, clipped to MediaBox; Rotate; UserUnit).
    """

    x0: float
    """Left edge of the CropBox, in units of unrotated user space."""
    y0: float
    """Bottom edge."""
    x1: float
    """Right edge; more than `x0`."""
    y1: float
    """Top edge; more than `y0`."""
    rotate: int
    """Clockwise rotation as shown: 0, 90, 180 or 270 degrees."""
    user_unit: float = 1.0
    """Points in a unit of user space; the edges are in units."""


@dataclass(frozen=True, slots=True)
class SignatureMark:
    """Where a signature field is seen on its page, be it signed or still empty."""

    page: int
    """1-based."""
    rect: tuple[float, float, float, float]
    """x0, y0, x1, y1 in unrotated user space; not empty."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """Where a text stands on its page."""

    page: int
    """1-based."""
    rect: Rect
    """Around all of its characters."""


@dataclass(frozen=True, slots=True)
class TextSearch:
    """What came of looking for a text."""

    found: FoundText | None
    """None: it is not there, or not in the part that was searched."""
    whole: bool = True
    """Whether all that was to be searched was, or it was found before."""


NAME_BYTES: Final = 255
"""Longest name of a file, in bytes of UTF-8, as file systems have it."""
_SIGNED: Final = "-firmado.pdf"


def signed_name(file_name: str) -> str:
    """How a signed document is called where it is saved.

    Args:
        file_name: of the document, ends in `.pdf`.

    Returns:
        The same with `-firmado`, once: the copy does not take the original's place. It
        has 255 bytes of UTF-8 at most, as file systems allow.
    """
    stem = file_name[:-4] if file_name.lower().endswith(".pdf") else file_name
    if stem.lower().endswith("-firmado"):
        return file_name
    kept = stem.encode()[: NAME_BYTES - len(_SIGNED)].decode(errors="ignore")
    return f"{kept.rstrip()}{_SIGNED}"


FIELD_LOOK: Final = "AP"
"""Entry of `EmptyField.needs` for a field whose look has words or pictures."""


@dataclass(frozen=True, slots=True)
class EmptyField:
    """A signature field that nobody has signed."""

    name: str
    """Fully qualified, such as `contrato.comprador`."""
    page: int | None = None
    """1-based; None for a field that is on no page, or on it without a place."""
    rect: Rect | None = None
    """Where it is shown; None together with `page`."""
    locked: bool = False
    """An earlier signature forbids to fill it, or it is read-only."""
    read_only: bool = False
    """Its maker marked it read-only, whatever signatures say."""
    closes: bool = False
    """Its own lock would forbid any signature in a field that is made later."""
    needs: tuple[str, ...] = ()
    """Demands that are not honoured here, by PDF names.

    Binding seed values; `Kids`, widgets that are objects of their own; `AP`, a look
    with words or pictures, which would be lost.
    """
    digests: tuple[str, ...] = ()
    """Digests that bind, such as `sha256`; empty: any."""
    certifies: int | None = None
    """Demanded kind: 0 an approval signature, 1 to 3 a certification with that P."""
    permits: int | None = None
    """P of its own lock, 1 to 3: what may be changed once it is signed. None: all."""
    locks: bool = False
    """True if its own lock names fields that nobody fills in once it is signed."""
    shuts: tuple[str, ...] = ()
    """Names in its own lock that cover empty signature fields: those themselves, and
    all below them."""

    def would_lock(self, name: str) -> bool:
        """Return whether signing it locks another empty field of that full name."""
        return self.closes or any(
            name == each or name.startswith(f"{each}.") for each in self.shuts
        )

    @property
    def usable(self) -> bool:
        """Whether anybody could sign it here."""
        return not self.locked and not self.needs


@dataclass(frozen=True, slots=True)
class SigningFacts:
    """What the signature fields of a document say together.

    Earlier signatures may forbid changes to the document (DocMDP) or to fields
    (FieldMDP); an empty field may say how it wants to be signed (seed values).

    Source: ISO 32000-2, 12.7.5.5 (signature fields, locks, seed values), 12.8.2
    (transform methods).
    """

    permitted: int | None = None
    """The strictest P (1, 2 or 3) of all signatures, or None."""
    new_locked: bool = False
    """A lock of an earlier signature covers fields that are made later."""
    empty: tuple[EmptyField, ...] = ()
    """In the order of the field tree."""
    signed: tuple[str, ...] = ()
    """Names of the fields that hold a signature."""

    def find(self, name: str) -> EmptyField | None:
        """The empty field of that full name."""
        return next((field for field in self.empty if field.name == name), None)


class _Remembered:
    """Room for a hash that belongs to an object and is none of its fields."""

    __slots__ = ("_basis",)
    _basis: str


@dataclass(frozen=True, slots=True)
class Inspection(_Remembered):
    """All that the sandbox says of one PDF that can be taken in.

    A file that cannot is a `DocumentRefusedError`, never an `Inspection`.
    """

    size_bytes: int
    pages: tuple[PageBox, ...]
    """One per page, found by walking the tree; 1 to 5,000."""
    findings: tuple[FindingKind, ...]
    """Sorted, without repeats."""
    signatures: int
    """Signature fields that hold a signature."""
    docmdp: int | None
    """P of a certification signature (1, 2 or 3), or None."""
    marks: tuple[SignatureMark, ...] = ()
    """Signature fields that are seen, in the order of the pages; at most
    `MARKS_KEPT` of them. A new stamp does not cover them by itself."""
    signing: SigningFacts = field(default_factory=SigningFacts)
    """What its signature fields allow."""
    last_number: int = 0
    """The greatest number of an object that the file has, refers to or leaves room for
    in `/Size`; what is appended is numbered above it. 0: not known."""
    inspector_version: int = INSPECTOR_VERSION

    @property
    def is_outdated(self) -> bool:
        """An earlier version made it: this one may say something else."""
        return self.inspector_version < INSPECTOR_VERSION

    @property
    def basis_sha256(self) -> str:
        """SHA-256, hex, of the facts that a signature's bytes and stamp follow from.

        Computed from the facts, never read from the record: a stored hash would be a
        claim about the row that it stands in. Computed once an object, since thousands
        of pages take milliseconds.

        Source: RFC 8785.
        """
        try:
            return self._basis
        except AttributeError:
            found = hashlib.sha256(canonical_json(_basis_of(self))).hexdigest()
            object.__setattr__(self, "_basis", found)
            return found


def _basis_of(inspection: Inspection) -> dict[str, object]:
    """The facts of `basis_sha256`; another version may say more beside them."""
    return {
        "pages": [_finite(run) for run in _page_runs(inspection, plain_unit=True)],
        "marks": [_finite([mark.page, *mark.rect]) for mark in inspection.marks],
        "fields": [
            # Escaped: a name of a file may hold half of a character.
            [json.dumps(field.name), field.page, _finite(field.rect or ())]
            for field in inspection.signing.empty
        ],
        # Of a strange file it is larger than a number of JSON can be.
        "lastNumber": str(inspection.last_number),
    }


def _finite(numbers: Sequence[float]) -> list[object]:
    """Numbers as JSON has them; of those that it lacks, such as an infinity, a word."""
    return [each if math.isfinite(each) else str(each) for each in numbers]


def _page_runs(
    inspection: Inspection, *, plain_unit: bool = False
) -> list[list[float]]:
    """Pages in a row that look alike as one entry, with their number first.

    Args:
        inspection: of the document.
        plain_unit: write a unit of user space that is one point, too.
    """
    return [
        [len(list(run)), box.x0, box.y0, box.x1, box.y1, box.rotate]
        + ([] if box.user_unit == 1 and not plain_unit else [box.user_unit])
        for box, run in groupby(inspection.pages)
    ]


def inspection_to_json(inspection: Inspection) -> dict[str, object]:
    """The stored form, of which each list of requests reads many.

    Pages in a row that look alike are one entry, with their number first. A unit of
    user space stands there only where it is not one point.
    """
    fields = asdict(replace(inspection, pages=()))
    del fields["pages"]
    fields["page_runs"] = _page_runs(inspection)
    fields["signing"] = signing_facts_to_json(inspection.signing)
    fields["marks"] = [[mark.page, *mark.rect] for mark in inspection.marks]
    fields["findings"] = [finding.value for finding in inspection.findings]
    return fields


def inspection_from_json(fields: dict[str, Any] | str) -> Inspection:
    """Read back what `inspection_to_json` wrote, or its text."""
    if isinstance(fields, str):
        return inspection_from_json(cast("dict[str, Any]", json.loads(fields)))
    return Inspection(
        size_bytes=fields["size_bytes"],
        pages=tuple(_pages(fields)),
        findings=tuple(FindingKind(word) for word in fields["findings"]),
        signatures=fields["signatures"],
        docmdp=fields["docmdp"],
        # Absent from what the first version stored.
        marks=tuple(
            SignatureMark(page, (x0, y0, x1, y1))
            for page, x0, y0, x1, y1 in fields.get("marks", ())
        ),
        signing=signing_facts_from_json(fields["signing"])
        if "signing" in fields
        else SigningFacts(),
        last_number=fields.get("last_number", 0),
        inspector_version=fields["inspector_version"],
    )


def _pages(fields: dict[str, Any]) -> Iterator[PageBox]:
    """Every page's box; earlier versions stored each by itself."""
    runs: Sequence[Sequence[Any]] = (
        fields["page_runs"]
        if "page_runs" in fields
        else [[1, *box] for box in fields["pages"]]
    )
    for times, *box in runs:
        yield from repeat(PageBox(*box), times)


def as_it_came(inspection: Inspection, repair: Repair | None) -> Inspection:
    """The inspection of a document, with the findings of how it came.

    Args:
        inspection: of its bytes, which cannot tell; or of the same ones that came in
            another way.
        repair: by which it was made; None: it came as it is.
    """
    findings = {*inspection.findings} - _OF_COPIES
    if repair is not None:
        findings.add(FindingKind.REPAIRED)
        if Damage.LOOK in repair.damage:
            findings.add(FindingKind.REPAIRED_LOOK)
        if Damage.LOOK_UNKNOWN in repair.damage:
            findings.add(FindingKind.UNEXAMINED_PARTS)
    if findings == {*inspection.findings}:
        return inspection
    return replace(inspection, findings=tuple(sorted(findings)))


def repair_of(
    original_sha256: str | None, damage: Sequence[str] | None
) -> Repair | None:
    """How a document was repaired, if it was.

    Args:
        original_sha256: of the file as it came, hex; None: it was not repaired.
        damage: words of `Damage`; None likewise.
    """
    if original_sha256 is None or damage is None:
        return None
    return Repair(original_sha256, tuple(Damage(word) for word in damage))


def signing_facts_to_json(facts: SigningFacts) -> dict[str, Any]:
    """Write the facts; of a lock only where a field has one."""
    written = asdict(facts)
    for each in written["empty"]:
        for name in ("permits", "locks", "read_only", "shuts"):
            if not each[name]:
                del each[name]
    return written


def signing_facts_from_json(message: Mapping[str, Any]) -> SigningFacts:
    """Read the facts, distrusting who wrote them.

    Raises:
        TypeError: a value of another type.
        ValueError: a value that none can be.
        KeyError: one is missing.
    """
    return SigningFacts(
        permitted=docmdp(message["permitted"]),
        new_locked=boolean(message["new_locked"]),
        empty=tuple(_empty_field(entry) for entry in message["empty"]),
        signed=texts(message["signed"], FIELDS_KEPT),
    )


def _empty_field(entry: Mapping[str, Any]) -> EmptyField:
    page, sides, certifies = entry["page"], entry["rect"], entry["certifies"]
    if (page is None) != (sides is None):
        raise ValueError
    if page is not None and (not isinstance(page, int) or page < 1):
        raise ValueError
    if certifies is not None and certifies not in _CERTIFYING:
        raise ValueError
    permits = docmdp(entry.get("permits"))
    return EmptyField(
        name=text(entry["name"]),
        page=page,
        rect=None if sides is None else rect(sides),
        locked=boolean(entry["locked"]),
        read_only=boolean(entry.get("read_only", False)),
        closes=boolean(entry["closes"]),
        needs=texts(entry["needs"], FIELDS_KEPT),
        digests=texts(entry["digests"], FIELDS_KEPT),
        certifies=certifies,
        permits=permits,
        locks=boolean(entry.get("locks", False)),
        shuts=texts(entry.get("shuts", []), FIELDS_KEPT),
    )
