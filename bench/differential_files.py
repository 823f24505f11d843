"""Files that are ambiguous on purpose, by kind.

    pdf = AMBIGUOUS["repeated key"](faces_of(dice))

Each has two pages to show, of which one is asked for in one way and the other in
another. They differ in their text and in the place and colour of a large box.
"""

import io
import random  # noqa: TID251 (files that can be made again; no secret)
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pikepdf

from tests.support.documents import hostile_pdfs
from tests.support.documents.appended_revisions import Appended, Row

TEXTS: Final = ("PAGAR CIEN", "PAGAR MIL")
"""Text of the first and of the second page."""
_NAMES: Final = (
    "page", "other_page", "content", "other_content", "drawing", "other_drawing",
    "resources", "other_resources", "pages", "other_pages", "catalog_entries",
    "note", "field", "look", "other_look", "drawn_content",
)  # fmt: skip
STARTXREF: Final = re.compile(rb"startxref\s+(\d+)")


@dataclass(slots=True)
class Faces:
    """A sound file with two pages to show, of which it shows the first.

    Args:
        pdf: the file.
        numbers: of its objects, by name.
        is_stream: its cross-references are a stream.
        free: number of no object, and neither is any above.
        root: entry of the trailer that names the catalog.
        trailer: entries that every later trailer repeats.
        dice: of this file.
    """

    pdf: bytes = field(repr=False)
    numbers: dict[str, int]
    is_stream: bool
    free: int
    root: bytes
    trailer: bytes
    dice: random.Random

    def ref(self, name: str) -> bytes:
        """Return a reference to an object."""
        return b"%d 0 R" % self.numbers[name]

    def page(self, content: str = "content", more: bytes = b"") -> bytes:
        """Return a page that shows one of the contents."""
        own = b"" if b"/Resources" in more else b"/Resources " + self.ref("resources")
        return b"<</Type/Page/Parent %s/MediaBox[0 0 300 400]/Contents %s%s%s>>" % (
            self.ref("pages"),
            self.ref(content),
            own,
            more,
        )

    def appended(self) -> Appended:
        """Begin a revision."""
        return Appended(self.pdf, self.free)

    def close(self, revision: Appended, root: bytes = b"") -> bytes:
        """End a revision by a table or a stream."""
        if self.is_stream and self.dice.random() < 0.8:
            return self.stream(revision, root=root)
        return self.table(revision, root=root)

    def table(
        self,
        revision: Appended,
        *,
        root: bytes = b"",
        more: bytes = b"",
        trailer: bytes = b"",
        prev: bytes | None = None,
        shift: int = 0,
    ) -> bytes:
        """End a revision by a table; see `Appended.table`."""
        return revision.table(
            root=root or self.root,
            more=more,
            trailer=self.trailer + trailer,
            prev=prev,
            shift=shift,
        )

    def stream(
        self,
        revision: Appended,
        *,
        number: int = 0,
        root: bytes = b"",
        more: Sequence[tuple[int, Row]] = (),
        starts: bool = True,
    ) -> bytes:
        """End a revision by a cross-reference stream; see `Appended.stream`."""
        return revision.stream(
            number or self.free + 8,
            root=root or self.root,
            more=more,
            trailer=self.trailer,
            starts=starts,
        )

    def pair(self) -> tuple[str, str]:
        """Return both contents, in any order."""
        names = ["content", "other_content"]
        self.dice.shuffle(names)
        return names[0], names[1]


def stream_of(data: bytes, entries: bytes = b"") -> bytes:
    """Write a stream with its right length."""
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


def _drawn(at: int, dice: random.Random) -> bytes:
    """Return the operators of one of the two pages."""
    red, blue = ((b"1", b"0"), (b"0", b"1"))[at]
    x, y = dice.randrange(20, 60), (40, 220)[at] + dice.randrange(20)
    return b"q %s 0 %s rg %d %d %d 90 re f Q BT /F 20 Tf 30 %d Td (%s) Tj ET" % (
        red,
        blue,
        x,
        y,
        dice.randrange(120, 200),
        y + 110,
        TEXTS[at].encode(),
    )


def _base(dice: random.Random, *, inherited: bool) -> bytes:
    """Return the objects of a file with both pages, with a classical table."""
    first, second = (_drawn(at, dice) for at in (0, 1))
    fonts = b"/Font<</F 20 0 R>>"
    resources = b"/Resources 8 0 R"
    page = b"<</Type/Page/Parent 10 0 R/MediaBox[0 0 300 400]/Contents %d 0 R%s%s>>"
    own = b"" if inherited else resources
    notes = b"/Annots[13 0 R 14 0 R]" if dice.random() < 0.5 else b""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 300 400]/Resources<<%s>>" % fonts
    look = b"/Type/XObject/Subtype/Form/BBox[0 0 120 40]/Resources<<%s>>" % fonts
    shown = (b"1 1 0 rg 0 0 120 40 re f", b"0 1 1 rg 0 0 120 40 re f")
    objects = {
        1: b"<</Type/Catalog/Pages 10 0 R/AcroForm<</Fields[14 0 R]"
        b"/DA(/F 12 Tf 0 g)/DR<<%s>>>>/XFaces[2 0 R 3 0 R 4 0 R 5 0 R 6 0 R 7 0 R"
        b" 8 0 R 9 0 R 10 0 R 11 0 R 12 0 R 13 0 R 14 0 R 15 0 R 16 0 R 17 0 R]>>"
        % fonts,
        2: page % (4, own, notes),
        3: page % (5, own, notes),
        4: stream_of(first),
        5: stream_of(second),
        6: stream_of(first, form),
        7: stream_of(second, form),
        8: b"<<%s/XObject<</X 6 0 R>>>>" % fonts,
        9: b"<<%s/XObject<</X 7 0 R>>>>" % fonts,
        10: b"<</Type/Pages/Count 1/Kids[2 0 R]%s>>" % (resources,),
        11: b"<</Type/Pages/Count 1/Kids[3 0 R]%s>>" % (resources,),
        12: b"<</Type/Catalog/Pages 11 0 R>>",
        13: b"<</Type/Annot/Subtype/Stamp/F 4/Rect[150 330 270 370]/AP<</N 15 0 R>>>>",
        14: b"<</Type/Annot/Subtype/Widget/FT/Tx/T(f)/F 4/Rect[20 330 140 370]"
        b"/V(CIEN)/DA(/F 12 Tf 0 g)/AP<</N 15 0 R>>>>",
        15: stream_of(shown[0] + b" BT 0 g /F 12 Tf 5 12 Td (CIEN) Tj ET", look),
        16: stream_of(shown[1] + b" BT 0 g /F 12 Tf 5 12 Td (MIL) Tj ET", look),
        17: stream_of(b"/X Do"),
        20: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    }
    return hostile_pdfs.build(objects)


def faces_of(dice: random.Random, *, encrypted: bool = False) -> Faces:
    """Write both pages with a table or streams, and tell the numbers of the objects."""
    raw = _base(dice, inherited=dice.random() < 0.5)
    is_stream = dice.random() < 0.5
    mode = (
        pikepdf.ObjectStreamMode.generate
        if is_stream
        else pikepdf.ObjectStreamMode.disable
    )
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(raw)) as opened:
        opened.save(
            out,
            object_stream_mode=mode,
            compress_streams=False,
            static_id=True,
            encryption=pikepdf.Encryption(owner="owner", R=dice.choice((4, 6)))
            if encrypted
            else False,
        )
    pdf = out.getvalue()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        listed = [each.objgen[0] for each in opened.Root.XFaces.as_list()]
        numbers = dict(zip(_NAMES, listed, strict=True))
    trailer = b""
    if encrypted:
        where = re.findall(rb"/Encrypt (\d+) 0 R", pdf)[-1]
        ids = re.findall(rb"/ID ?(\[.*?\])", pdf, re.DOTALL)[-1]
        trailer = b"/Encrypt %s 0 R/ID%s" % (where, ids)
    root = re.findall(rb"/Root \d+ 0 R", pdf)[-1]
    free = max(map(int, re.findall(rb"/Size (\d+)", pdf)))
    return Faces(pdf, numbers, is_stream, free, root, trailer, dice)


PADS: Final = b"".join(b"/K%02d 0" % at for at in range(40))
"""Entries of a dictionary that some readers sort, being so large, and search."""


def _repeated(faces: Faces) -> bytes:
    """Write a key twice, in any of five dictionaries."""
    one, two = faces.pair()
    revision, ref, n = faces.appended(), faces.ref, faces.numbers
    between = faces.dice.choice((b"", PADS, PADS, b"/A 0" + PADS + b"/Z 0"))
    kind = faces.dice.randrange(5)
    if kind == 0:
        key = faces.dice.choice((b"/Contents ", b"/#43ontents "))
        revision.add(n["page"], faces.page(one, between + key + ref(two)))
    elif kind == 1:
        pair = ["resources", "other_resources"]
        faces.dice.shuffle(pair)
        both = b"/Resources %s%s/Resources %s" % (ref(pair[0]), between, ref(pair[1]))
        revision.add(n["page"], faces.page("drawn_content", both))
    elif kind == 2:
        kids = ["page", "other_page"]
        faces.dice.shuffle(kids)
        revision.add(
            n["pages"],
            b"<</Type/Pages/Count 1/Kids[%s]%s/Kids[%s]>>"
            % (ref(kids[0]), between, ref(kids[1])),
        )
    elif kind == 3:
        looks = ["look", "other_look"]
        faces.dice.shuffle(looks)
        both = b"/AP<</N %s%s/N %s>>" % (ref(looks[0]), between, ref(looks[1]))
        revision.add(n["page"], faces.page("content", b"/Annots[%s]" % ref("note")))
        revision.add(
            n["note"],
            b"<</Type/Annot/Subtype/Stamp/F 4/Rect[20 20 280 380]%s>>" % both,
        )
    else:
        names = b"/XObject<</X %s>>%s/XObject<</X %s>>" % (
            ref("other_drawing"),
            between,
            ref("drawing"),
        )
        revision.add(
            n["page"], faces.page("drawn_content", b"/Resources<<%s>>" % names)
        )
    return faces.close(revision)


def _two_roots(faces: Faces) -> bytes:
    """Name both catalogs in the trailer."""
    roots = [faces.root, b"/Root " + faces.ref("catalog_entries")]
    faces.dice.shuffle(roots)
    revision = faces.appended()
    revision.add(faces.free, b"<<>>")
    between = faces.dice.choice((b"", PADS))
    return faces.close(revision, between.join(roots))


def _listed_twice(faces: Faces) -> bytes:
    """List the page at two offsets, in a table or a stream."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    revision.add(number, faces.page(one))
    other = revision.write(number, faces.page(two))
    if faces.dice.random() < 0.5:
        more = [(number, (1, other, 0))]
        return faces.stream(revision, more=more)
    row = b"%d 1\n%010d 00000 n \n" % (number, other)
    return faces.table(revision, more=row)


def _wrong_offset(faces: Faces) -> bytes:
    """Let the page's entry point at another object, or beside its own."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    first = revision.write(number, faces.page(one))
    other = revision.write(faces.free, faces.page(two))
    revision.list(faces.free, other)
    where = faces.dice.choice((other, other, first + 1, first - 3, first + 7, 0))
    revision.list(number, where)
    return faces.close(revision)


def _generation(faces: Faces) -> bytes:
    """Write the page with another generation than its entry or reference has."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    written, listed = faces.dice.choice(((1, 1), (1, 0), (0, 1), (3, 3)))
    revision.write(number, faces.page(one))
    revision.list(number, revision.write(number, faces.page(two), written), listed)
    return faces.close(revision)


def _held(faces: Faces) -> bytes:
    """Hold both pages in an object stream, one of them under a doubtful index."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    pages = {number: faces.page(one), faces.free + 1: faces.page(two)}
    kind = faces.dice.randrange(4)
    if kind == 0:
        revision.hold(faces.free, pages)
        revision.entries[number] = (2, faces.free, 1)
    elif kind == 1:
        header = b"%d 0 %d %d" % (number, number, len(pages[number]) + 1)
        revision.hold(faces.free, pages, header=header)
        del revision.entries[faces.free + 1]
    elif kind == 2:
        revision.hold(faces.free, {number: pages[number]})
        revision.hold(faces.free + 2, {number: faces.page(two)})
        revision.entries[number] = (2, faces.free, 0)
    else:
        revision.hold(faces.free, pages)
        revision.entries[number] = (2, faces.free, 7)
    return faces.stream(revision)


def _held_and_written(faces: Faces) -> bytes:
    """Hold one page in an object stream, and write the other; list either."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    revision.hold(faces.free, {number: faces.page(one), faces.free + 1: b"<<>>"})
    at = revision.write(number, faces.page(two))
    if faces.dice.random() < 0.5:
        revision.list(number, at)
    made = faces.stream(revision)
    return unanchored(made, faces.dice)


def _hybrid(faces: Faces) -> bytes:
    """List one page in the table and the other in the stream beside it."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    at = revision.write(number, faces.page(one))
    revision.entries[number] = (1, revision.write(number, faces.page(two)), 0)
    start = len(revision.out)
    faces.stream(revision, number=faces.free, starts=False)
    row = faces.dice.choice(
        (b"%010d 00000 n \n" % at, b"%010d 65535 f \n" % 0, b"%010d 00001 f \n" % 0)
    )
    more = b"%d 1\n%s" % (number, row)
    return faces.table(revision, more=more, trailer=b"/XRefStm %d" % start)


def unanchored(pdf: bytes, dice: random.Random) -> bytes:
    """Shift `startxref` in half of the cases, so that readers rebuild the table."""
    return pdf if dice.random() < 0.5 else shifted(pdf, dice)


def shifted(pdf: bytes, dice: random.Random) -> bytes:
    """Let `startxref` point beside its section."""
    at = list(STARTXREF.finditer(pdf))[-1]
    shifted = int(at.group(1)) + dice.choice((-7, -1, 1, 2, 5, 40))
    return pdf[: at.start(1)] + b"%d" % shifted + pdf[at.end(1) :]


def _unlisted(faces: Faces) -> bytes:
    """Write one page that is listed and one that is not."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    if faces.dice.random() < 0.5:
        revision.add(number, faces.page(one))
        revision.write(number, faces.page(two))
    else:
        revision.write(number, faces.page(one))
        revision.add(number, faces.page(two))
    return shifted(faces.close(revision), faces.dice)


def _skipped(faces: Faces) -> bytes:
    """Leave a revision out of the chain of sections, for some readers or all."""
    number = faces.numbers["page"]
    first = faces.appended()
    first.add(number, faces.page("other_content"))
    middle = faces.close(first)
    later = Appended(middle, faces.free)
    oldest = Appended(faces.pdf).previous
    at = later.add(faces.free, b"%d" % oldest)
    odd = faces.dice.choice(
        (
            b"/Prev %d" % oldest,
            b"/Prev %d.0" % oldest,
            b"/Prev %d 0 R" % faces.free,
            b"/Prev %d" % (oldest + 2**32),
            b"/Prev %d" % (oldest + faces.dice.choice((-3, 1, 2, 9))),
            b"/Prev %d%s/Prev %d" % (oldest, PADS, later.previous),
            b"/Prev %d" % at,
            b"/Prev -1",
            b"",
        )
    )
    return faces.table(later, prev=odd)


def _lengths(faces: Faces) -> bytes:
    """End a content in two places."""
    one, two = (_drawn(at, faces.dice) for at in (0, 1))
    whole = one + b"\nendstream\n" + two
    length = faces.dice.choice(
        (len(whole), len(one), len(one) // 2, len(whole) * 3, 0, len(one) + 9)
    )
    revision = faces.appended()
    named = b"%d" % length
    if faces.dice.random() < 0.3:
        named = b"%d 0 R" % faces.free
        revision.add(faces.free, b"%d" % length)
    revision.add(
        faces.numbers["content"],
        b"<</Length %s>>stream\n%s\nendstream" % (named, whole),
    )
    return faces.close(revision)


def _fields(faces: Faces) -> bytes:
    """Give a field another value than its appearance shows."""
    ref, dice, revision = faces.ref, faces.dice, faces.appended()
    look = dice.choice(
        (
            b"/AP<</N %s>>" % ref("look"),
            b"/AP<</N<</On %s/Off %s>>>>/AS/On" % (ref("look"), ref("other_look")),
            b"/AP<</N<</On %s/Off %s>>>>" % (ref("look"), ref("other_look")),
            b"",
        )
    )
    kind = dice.choice(
        (
            b"/FT/Tx/V(MIL MIL)",
            b"/FT/Btn/V/On",
            b"/FT/Ch/Ff 131072/Opt[(A)(MIL)]/V(MIL)",
        )
    )
    revision.add(
        faces.numbers["field"],
        b"<</Type/Annot/Subtype/Widget/T(f)/F 4/Rect[20 20 280 300]"
        b"/DA(/F 40 Tf 0 0 1 rg)%s%s>>" % (kind, look),
    )
    revision.add(
        faces.numbers["page"],
        faces.page("content", b"/Annots[%s]" % ref("field")),
    )
    root = faces.free + 1
    need = dice.choice((b"/NeedAppearances true", b"/NeedAppearances false", b""))
    revision.add(
        root,
        b"<</Type/Catalog/Pages %s/AcroForm<</Fields[%s]/DA(/F 12 Tf 0 g)%s>>>>"
        % (ref("pages"), ref("field"), need),
    )
    return faces.close(revision, b"/Root %d 0 R" % root)


def _notes(faces: Faces) -> bytes:
    """Draw a large annotation that some readers show and others do not."""
    ref, dice, revision = faces.ref, faces.dice, faces.appended()
    look = dice.choice(
        (
            b"/AP<</N %s>>" % ref("look"),
            b"/AP<</N<</On %s/Off %s>>>>" % (ref("look"), ref("other_look")),
            b"/AP<</N<</On %s/Off %s>>>>/AS/None" % (ref("look"), ref("other_look")),
            b"/AP<</D %s/R %s>>" % (ref("look"), ref("other_look")),
            b"",
        )
    )
    kind = dice.choice(
        (
            b"/Stamp",
            b"/Highlight/QuadPoints[20 300 280 300 20 20 280 20]/C[1 0 1]",
            b"/Square/IC[0 1 0]/C[1 0 0]",
            b"/FreeText/Contents(MIL)/DA(/Helv 40 Tf)/C[0 1 0]",
            b"/Link/C[1 0 0]/Border[0 0 20]",
            b"/Popup/Open true/C[0 1 0]",
            b"/Widget/FT/Tx/MK<</BG[0 1 0]>>",
        )
    )
    flags = dice.choice((0, 1, 2, 4, 32, 36, 64))
    revision.add(
        faces.numbers["note"],
        b"<</Type/Annot/Subtype%s/F %d/Rect[20 20 280 300]%s>>" % (kind, flags, look),
    )
    revision.add(
        faces.numbers["page"], faces.page("content", b"/Annots[%s]" % ref("note"))
    )
    return faces.close(revision)


def _parents(faces: Faces) -> bytes:
    """Let a page inherit other things by its parent than by the tree."""
    ref, n, revision = faces.ref, faces.numbers, faces.appended()
    wrong, right = b"other_resources", b"resources"
    inherits = [wrong, right]
    faces.dice.shuffle(inherits)
    box = faces.dice.choice((b"", b"/MediaBox[0 0 300 400]/Rotate 180"))
    for name, what in zip(("pages", "other_pages"), inherits, strict=True):
        revision.add(
            n[name],
            b"<</Type/Pages/Count 1/Kids[%s]/Resources %s%s>>"
            % (ref("page"), ref(what.decode()), box if name == "pages" else b""),
        )
    own = b"" if box else b"/MediaBox[0 0 300 400]"
    parent = faces.dice.choice((ref("other_pages"), ref("other_pages"), b"null", b""))
    revision.add(
        n["page"],
        b"<</Type/Page%s%s/Contents %s>>"
        % (b"/Parent " + parent if parent else b"", own, ref("drawn_content")),
    )
    return faces.close(revision)


def _tree(faces: Faces) -> bytes:
    """Write a page tree that lists or counts its pages doubtfully."""
    ref, n, dice, revision = faces.ref, faces.numbers, faces.dice, faces.appended()
    page, other = ref("page"), ref("other_page")
    kids = dice.choice(
        (
            b"%s %s" % (page, other),
            b"%s %s %s" % (other, page, other),
            b"null %s %s" % (other, page),
            b"%s null %s" % (page, other),
            b"%s %s" % (ref("other_pages"), page),
            b"%s" % other,
            b"%s %s" % (ref("pages"), other),
            b"%s %s" % (ref("note"), other),
            b"%s %d 9 R" % (other, n["page"]),
        )
    )
    count = dice.choice((b"1", b"1", b"2", b"2", b"3", b"9", b"2.0", b"0", b"(2)"))
    revision.add(
        n["pages"],
        b"<</Type/Pages/Count %s/Kids[%s]/Resources %s>>"
        % (count, kids, ref("resources")),
    )
    if dice.random() < 0.3:
        form = dice.choice((b"/Typo/Page", b"/Type/Pages", b"/Type/Template", b""))
        body = faces.page("other_content").replace(b"/Type/Page", form, 1)
        revision.add(n["other_page"], body)
    return faces.close(revision)


def _optional(faces: Faces) -> bytes:
    """Show both drawings, each in a layer whose state readers take differently."""
    ref, dice, revision = faces.ref, faces.dice, faces.appended()
    layers = b"%d 0 R %d 0 R" % (faces.free, faces.free + 1)
    for at in (0, 1):
        usage = dice.choice(
            (
                b"",
                b"/Usage<</Print<</PrintState/OFF>>/View<</ViewState/ON>>>>",
                b"/Usage<</View<</ViewState/OFF>>>>",
                b"/Intent/Design",
            )
        )
        revision.add(faces.free + at, b"<</Type/OCG/Name(L%d)%s>>" % (at, usage))
    member = dice.choice(
        (
            b"<</Type/OCMD/OCGs[%s]/P/AllOff>>" % layers,
            b"<</Type/OCMD/OCGs[%s]/P/AnyOn>>" % layers,
            b"<</Type/OCMD/VE[/Not %d 0 R]/OCGs %d 0 R>>" % (faces.free, faces.free),
            b"<</Type/OCMD/VE[/And %s]/OCGs[%s]/P/AnyOff>>" % (layers, layers),
            b"%d 0 R" % faces.free,
        )
    )
    state = dice.choice(
        (
            b"/OFF[%d 0 R]" % faces.free,
            b"/BaseState/OFF",
            b"/BaseState/OFF/ON[%d 0 R]" % (faces.free + 1),
            b"/BaseState/Unchanged/OFF[%s]" % layers,
            b"/OFF[%d 0 R]/ON[%d 0 R]" % (faces.free, faces.free),
            b"/AS[<</Event/View/Category[/View]/OCGs[%s]>>]" % layers,
        )
    )
    one, two = (_drawn(at, dice) for at in (0, 1))
    body = b"/OC /A BDC %s EMC /OC /B BDC %s EMC" % (one, two)
    fonts = b"/Font<</F %d 0 R>>" % (faces.free + 3)
    revision.add(faces.free + 3, b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    revision.add(faces.numbers["content"], stream_of(body))
    revision.add(
        faces.numbers["page"],
        faces.page(
            "content",
            b"/Resources<<%s/Properties<</A %s/B %d 0 R>>>>"
            % (
                fonts,
                member if member.endswith(b"R") else b"%d 0 R" % (faces.free + 4),
                faces.free + 1,
            ),
        ),
    )
    revision.add(faces.free + 4, b"<<>>" if member.endswith(b"R") else member)
    revision.add(
        faces.free + 5,
        b"<</Type/Catalog/Pages %s/OCProperties<</OCGs[%s]/D<<%s>>>>>>"
        % (ref("pages"), layers, state),
    )
    return faces.close(revision, b"/Root %d 0 R" % (faces.free + 5))


def _end(faces: Faces) -> bytes:
    """Make the file's end, or its beginning, one that not all readers take."""
    one, two = faces.pair()
    dice, revision = faces.dice, faces.appended()
    revision.add(faces.numbers["page"], faces.page(one))
    # Readers that rebuild the table take the last one.
    revision.write(faces.numbers["page"], faces.page(two))
    made = faces.close(revision)
    start, _, rest = made.rpartition(b"startxref\n")
    where = rest.split()[0]
    many = dice.choice((1_100, 2_000, 3_900, 5_000))
    return dice.choice(
        (
            made + b"%" + b"x" * many + b"\n",
            made + b"\0" * many,
            made + b"\0" * many + b"\n%%EOF\n",
            b"x" * dice.randrange(1, 900) + b"\n" + made,
            start + b"startxref\n%here\n" + where + b"\n%%EOF\n",
            start + b"startxref\n+" + where + b"\n%%EOF\n",
            start + b"startxref" + where + b"\n%%EOF\n",
            start + b"startxref\n" + where + b"\n",
            made + b"startxref\n%%EOF\n",
            made + b"startxref\n0\n%%EOF\n",
            made + b"startxref\n%d\n%%%%EOF\n" % Appended(faces.pdf).previous,
            start + b"%%EOF\n",
        )
    )


def _content(faces: Faces) -> bytes:
    """Write a content that readers interpret differently."""
    one, two = (_drawn(at, faces.dice) for at in (0, 1))
    between = faces.dice.choice(
        (
            b" Q Q Q ",
            b" /Nothing Do ",
            b" BI /W 2 /H 2 /BPC 8 /CS /G ID abcd ",
            b" [ ( ",
            b" << /A ",
            b" /Missing gs /Missing cs 7 scn ",
            b" 0 0 0 0 re W n ",
            b" ) > ] ",
            b" 1e3 0 0 1 0 0 cm ",
            b" /Span << /ActualText (X) >> BDC ",
            b" BX unknown EX 0 0 0 0 0 0 cm ",
        )
    )
    filters = faces.dice.choice(
        (b"", b"", b"/Filter[]", b"/Filter/Nothing", b"/F null", b"/Filter null")
    )
    revision = faces.appended()
    body = one + between + two
    revision.add(faces.numbers["content"], stream_of(body, filters))
    return faces.close(revision)


def _sections(faces: Faces) -> bytes:
    """Write a cross-reference stream whose fields readers take differently."""
    one, two = faces.pair()
    revision, number = faces.appended(), faces.numbers["page"]
    revision.add(number, faces.page(one))
    other = revision.write(number, faces.page(two))
    kind = faces.dice.randrange(5)
    if kind < 2:
        more = [(number, ((1, other, 0), (3, other, 0))[kind])]
        return faces.stream(revision, more=more)
    made = faces.stream(revision)
    if kind == 2:
        return made.replace(b"/W[1 4 2]/Index", b"/W[1 4 2]/Inde#78", 1)
    if kind == 3:
        head, keyword, tail = made.rpartition(b"/Size %d" % revision.size)
        return head + b"/Size %0*d" % (len(keyword) - 6, number) + tail
    return made[::-1].replace(b"/W[1 4 2]"[::-1], b"/W[1 2 4]"[::-1], 1)[::-1]


_TWO: Final = (_repeated, _two_roots, _listed_twice, _wrong_offset, _unlisted, _hybrid)


def _encrypted(faces: Faces) -> bytes:
    """Make an encrypted file ambiguous in one of the ways that write no stream."""
    return faces.dice.choice(_TWO)(faces)


AMBIGUOUS: Final[dict[str, Callable[[Faces], bytes]]] = {
    "repeated key": _repeated,
    "two roots": _two_roots,
    "listed twice": _listed_twice,
    "wrong offset": _wrong_offset,
    "generation": _generation,
    "object stream": _held,
    "held and written": _held_and_written,
    "hybrid": _hybrid,
    "unlisted object": _unlisted,
    "skipped section": _skipped,
    "stream length": _lengths,
    "form field": _fields,
    "annotation": _notes,
    "inherited resources": _parents,
    "page tree": _tree,
    "optional content": _optional,
    "end of file": _end,
    "content operators": _content,
    "cross-reference stream": _sections,
    "encrypted": _encrypted,
}
"""Kinds of files that are ambiguous by construction."""


OF_A_PAGE: Final = (
    _listed_twice,
    _wrong_offset,
    _generation,
    _held,
    _held_and_written,
    _hybrid,
    _unlisted,
    _skipped,
    _end,
    _sections,
)
"""Kinds that need nothing of a file but a page."""
