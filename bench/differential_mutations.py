"""Mutations of real files, and the files of the differential bench by kind and number.

    file = made("real: pages", number, originals)

The same number makes the same file, except for the keys of encrypted ones.
"""

import io
import random  # noqa: TID251 (files that can be made again; no secret)
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pikepdf

from bench.differential_files import (
    AMBIGUOUS,
    OF_A_PAGE,
    PADS,
    STARTXREF,
    Faces,
    faces_of,
    stream_of,
    unanchored,
)
from bench.fuzz import Mutation, cut, flipped, retold, rewired
from tests.support.documents.appended_revisions import Appended

_ROW: Final = re.compile(rb"\d{10} \d{5} [nf][ \r\n]{2}")
_OBJECT: Final = re.compile(rb"(?<!\d)(\d+) 0 obj\b.*?endobj", re.DOTALL)
_LENGTH: Final = re.compile(rb"/Length (\d+)")
_KEY: Final = re.compile(
    rb"/(?:Contents|Kids|Resources|Annots|AP|N|Font|XObject|Parent)\b"
)


def _keys(pdf: bytes, dice: random.Random) -> bytes:
    """Rename a key, or write it once more with another reference of the file."""
    found = list(_KEY.finditer(pdf))
    if not found:
        return flipped(pdf, dice)
    at = dice.choice(found)
    key: bytes = at.group()
    if dice.random() < 0.2:
        escaped = key[:-1] + b"#%02x" % key[-1]
        return pdf[: at.start()] + escaped + pdf[at.end() :]
    references: list[bytes] = re.findall(rb"\d+ 0 R", pdf) or [b"null"]
    more = key + b" " + dice.choice(references) + dice.choice((b"", PADS))
    return pdf[: at.start()] + more + pdf[at.start() :]


def _offsets(pdf: bytes, dice: random.Random) -> bytes:
    """Change the offset of a row, or `startxref`."""
    rows = list(_ROW.finditer(pdf))
    if not rows or dice.random() < 0.3:
        return unanchored(unanchored(pdf, dice), dice) if STARTXREF.search(pdf) else pdf
    at = dice.choice(rows)
    moved = max(int(at.group()[:10]) + dice.choice((-20, -1, 1, 3, 100)), 0)
    return pdf[: at.start()] + b"%010d" % moved + pdf[at.start() + 10 :]


def _other_lengths(pdf: bytes, dice: random.Random) -> bytes:
    """Change the length of a stream."""
    found = list(_LENGTH.finditer(pdf))
    if not found:
        return flipped(pdf, dice)
    at = dice.choice(found)
    length = int(at.group(1))
    other = dice.choice((0, length // 2, max(length - 1, 0), length + 1, length * 2))
    return pdf[: at.start(1)] + b"%d" % other + pdf[at.end(1) :]


def _duplicated(pdf: bytes, dice: random.Random) -> bytes:
    """Write an object again before the end, with the body of another."""
    found = list(_OBJECT.finditer(pdf))
    if len(found) < 2:
        return cut(pdf, dice)
    one, other = dice.sample(found, 2)
    body = other.group().partition(b"obj")[2]
    again = b"%s 0 obj%s\n" % (one.group(1), body)
    at = pdf.rfind(b"startxref") if dice.random() < 0.5 else found[0].start()
    return pdf[:at] + again + pdf[at:]


def _dropped(pdf: bytes, dice: random.Random) -> bytes:
    """Drop a row of a table."""
    rows = list(_ROW.finditer(pdf))
    if not rows:
        return cut(pdf, dice)
    at = dice.choice(rows)
    return pdf[: at.start()] + pdf[at.end() :]


def _swapped(pdf: bytes, dice: random.Random) -> bytes:
    """Swap two rows of a table."""
    rows = list(_ROW.finditer(pdf))
    if len(rows) < 2:
        return retold(pdf, dice)
    one, other = sorted(dice.sample(rows, 2), key=re.Match.start)
    return (
        pdf[: one.start()]
        + other.group()
        + pdf[one.end() : other.start()]
        + one.group()
        + pdf[other.end() :]
    )


def _revised(pdf: bytes, dice: random.Random) -> bytes:
    """Append a revision that gives an object the body of another."""
    found = [each for each in _OBJECT.finditer(pdf) if len(each.group()) < 20_000]
    sections = STARTXREF.findall(pdf)
    root = re.findall(rb"/Root (\d+) 0 R", pdf)
    if len(found) < 2 or not sections or not root:
        return cut(pdf, dice)
    sizes = map(int, re.findall(rb"/Size (\d{1,6})\b", pdf))
    revision = Appended(pdf, max(sizes, default=1))
    for _ in range(dice.choice((1, 2))):
        one, other = dice.sample(found, 2)
        body = other.group().partition(b"obj")[2].removesuffix(b"endobj")
        revision.add(int(one.group(1)), body.strip())
    return revision.table(root=b"/Root %s 0 R" % root[-1])


class _RealFaces(Faces):
    """A real file of which one page has another content to show."""

    bodies: dict[str, bytes]

    def page(self, content: str = "content", more: bytes = b"") -> bytes:
        """Return the page as it is, or with the other content."""
        return self.bodies[content] + more


def _again(pdf: bytes, dice: random.Random) -> bytes:
    """Write a page of a real file again, in one of the ways of ambiguous files."""
    with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
        page = dice.choice(list(opened.pages))
        number, root = page.obj.objgen[0], opened.Root.objgen[0]
        sizes = map(int, re.findall(rb"/Size (\d{1,6})\b", pdf))
        free = max(len(opened.objects) + 1, *sizes)
        if opened.is_encrypted or not number or not root:
            return cut(pdf, dice)
        x0, y0, x1, y1 = (float(edge) for edge in page.mediabox)
        body = page.obj.unparse(resolved=True)
        if "/Contents" in page.obj:
            del page.obj["/Contents"]
        other = page.obj.unparse(resolved=True).rstrip().removesuffix(b">>")
    drawn = b"0 0 1 rg %d %d %d %d re f" % (
        round(x0 + (x1 - x0) * dice.uniform(0, 0.3)),
        round(y0 + (y1 - y0) * dice.uniform(0, 0.3)),
        round((x1 - x0) * 0.6),
        round((y1 - y0) * 0.6),
    )
    start = int((STARTXREF.findall(pdf) or [b"0"])[-1])
    faces = _RealFaces(
        pdf=pdf,
        numbers={"page": number},
        is_stream=not pdf[start:].lstrip().startswith(b"xref"),
        free=free + 1,
        root=b"/Root %d 0 R" % root,
        trailer=b"",
        dice=dice,
    )
    revision = faces.appended()
    revision.add(free, stream_of(drawn))
    faces.pdf = (
        faces.stream(revision, number=free + 1)
        if faces.is_stream
        else faces.table(revision)
    )
    faces.free += 1
    faces.bodies = {
        "content": body,
        "other_content": other + b"/Contents %d 0 R>>" % free,
    }
    return dice.choice(OF_A_PAGE)(faces)


def _often(mutation: Mutation) -> Mutation:
    """Make a mutation one to four times."""

    def often(pdf: bytes, dice: random.Random) -> bytes:
        for _ in range(dice.randrange(1, 5)):
            pdf = mutation(pdf, dice)
        return pdf

    return often


MUTATED: Final[dict[str, tuple[Mutation, ...]]] = {
    "real: bytes and tokens": (flipped, retold),
    "real: keys and entries": (_keys, _keys, rewired),
    "real: objects and cross-references": (
        _duplicated,
        _other_lengths,
        _revised,
        _often(_offsets),
        _dropped,
        _often(_swapped),
    ),
    "real: pages": (_again,),
}
"""Kinds of mutations of real files."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file of a kind.

    Args:
        pdf: the file.
        original: what was mutated; empty for a file that is ambiguous on purpose.
    """

    pdf: bytes = field(repr=False)
    original: bytes = field(default=b"", repr=False)


def made(kind: str, number: int, originals: Sequence[bytes]) -> Made:
    """Make the file of a kind and a number.

    Args:
        kind: of `AMBIGUOUS` or `MUTATED`.
        number: of the file.
        originals: real files, one at least for `MUTATED`.
    """
    dice = random.Random(f"{kind} {number}")  # noqa: S311 (to be made again)
    if kind in AMBIGUOUS:
        encrypted = kind == "encrypted"
        return Made(AMBIGUOUS[kind](faces_of(dice, encrypted=encrypted)))
    # A small one: a change in a large one seldom shows.
    original = min(dice.choice(originals), dice.choice(originals), key=len)
    return Made(dice.choice(MUTATED[kind])(original, dice), original)


SHARES: Final = {
    "repeated key": 130,
    "two roots": 110,
    "listed twice": 80,
    "wrong offset": 150,
    "generation": 100,
    "object stream": 160,
    "held and written": 220,
    "hybrid": 110,
    "unlisted object": 300,
    "skipped section": 190,
    "stream length": 140,
    "form field": 165,
    "annotation": 165,
    "inherited resources": 80,
    "page tree": 250,
    "optional content": 100,
    "end of file": 120,
    "content operators": 210,
    "cross-reference stream": 240,
    "encrypted": 140,
    "real: bytes and tokens": 600,
    "real: keys and entries": 800,
    "real: objects and cross-references": 800,
    "real: pages": 180,
}
"""Files of each kind: enough for some sixty that two readers show differently."""
