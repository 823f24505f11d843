"""Signed files of our own engine, and the honest revisions that may follow them.

    more = makers().timestamped(base("B-B"))

The keys are software and prove nothing; `makers().root` is the one trusted root.
"""

import datetime as dt
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import MDPPerm, SigFieldSpec, SigSeedSubFilter
from pyhanko.stamp import TextStampStyle

from appliance.domain.appearance.stamp import StampLayout, place, stamp_lines
from appliance.domain.clock import SystemClock
from appliance.domain.documents.inspected import PageBox
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from tests.support.documents.contract_pdf import (
    HIGH,
    WIDE,
    contract,
    dangling_contract,
    line,
    locked_contract,
    rewritten,
)
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki, SoftwareTsa
from tests.support.processes.event_loops import run_apart
from worker.pades import (
    SignaturePlan,
    Validated,
    add_dss,
    check,
    fill_timestamp,
    method_for,
    prepare,
    prepare_timestamp,
)
from worker.pades.appearance.fonts import StampFonts, load_fonts

_SHA256: Final = DigestAlgorithm.SHA256
_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_ROOM: Final = 8192
_STAMP_X: Final = 155
"""Beside what the contract shows, so that a stamp covers nothing that was signed."""
_STAMP_YS: Final = (15, 90, 165)
"""Places of three stamps, in points from above."""
_PAGE: Final = PageBox(0, 0, WIDE, HIGH, 0)
_BOX: Final = b"[0 0 %d %d]" % (WIDE, HIGH)
_P: Final = {
    1: Restriction.NO_CHANGES_ALLOWED,
    2: Restriction.FORM_FILLING,
    3: Restriction.FORM_FILLING_AND_ANNOTATIONS,
}


@dataclass(frozen=True)
class Makers:
    """The signer, the timestamp authority and the fonts of a test run."""

    pki: LongTermPki
    signer: SoftwareSigner
    tsa: SoftwareTsa
    fonts: StampFonts

    @classmethod
    def now(cls) -> "Makers":
        """Make keys and certificates that are valid at the machine's time."""
        now = SystemClock().now().replace(microsecond=0)
        pki = LongTermPki(MovingClock(now - dt.timedelta(hours=1)))
        return cls(pki, pki.signer(), pki.tsa(), load_fonts(_FONTS))

    @property
    def root(self) -> bytes:
        """The one trusted root, DER."""
        return self.pki.chain[-1]

    def signed(
        self,
        pdf: bytes,
        *,
        certify: int = 0,
        stamp_y: int | None = None,
        field: str | None = None,
        timestamp: bool = False,
    ) -> bytes:
        """Sign with our engine, B-B or B-T.

        Args:
            pdf: the file.
            certify: P of DocMDP, 1 to 3; 0: an approval signature.
            stamp_y: where the stamp stands on page 1, in points from above; None:
                an invisible signature.
            field: full name of an existing empty field; None: a new one.
            timestamp: add a signature timestamp.
        """
        plan = SignaturePlan(
            "Firma", self._stamp(stamp_y), _P.get(certify, Restriction.NO_VALUE),
            self.pki.clock.now(), "Ana", self.signer.certificate, self.signer.chain,
            method_for(self.signer.certificate), existing=field,
        )  # fmt: skip
        plan = replace(plan, token_bytes=_ROOM if timestamp else 0)
        prepared = prepare(pdf, plan, self.fonts)
        value = self.signer.value(prepared.digest, plan.method)
        digest = hashlib.new(plan.method.digest.value, value).digest()
        token = self.tsa.token(digest, plan.method.digest) if timestamp else None
        increment = self.signer.filled(prepared, plan, value, token)
        check(pdf, increment, plan.certificate)
        return pdf + increment

    def _stamp(self, y: int | None) -> StampLayout | None:
        if y is None:
            return None
        lines = stamp_lines("Ana Núñez", "20267565393", self.pki.clock.now(), "es")
        return place(SignParameters(x=_STAMP_X, y=y), lines, [_PAGE])

    def stock_signed(
        self,
        pdf: bytes,
        field: str = "Stock",
        *,
        certify: MDPPerm | None = None,
        box: tuple[int, int, int, int] | None = None,
        apart: bool = False,
    ) -> bytes:
        """Sign with pyHanko as it comes.

        Args:
            pdf: the file, not encrypted.
            field: name of the field, made if there is none.
            certify: P of DocMDP; None: an approval signature.
            box: the stamp's rectangle on page 1; None: an invisible signature.
            apart: whether the mark is an object of its own.
        """
        spec = SigFieldSpec(field, box=box, combine_annotation=not apart)
        metadata = PdfSignatureMetadata(
            field_name=field, md_algorithm="sha256",
            subfilter=SigSeedSubFilter.PADES, certify=certify is not None,
            docmdp_permissions=certify or MDPPerm.FILL_FORMS,
        )  # fmt: skip
        signer = PdfSigner(
            metadata,
            signer=self.signer.stock(),
            new_field_spec=spec if box else None,
            stamp_style=TextStampStyle(stamp_text="Ana") if box else None,
        )
        out = io.BytesIO()
        writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
        run_apart(signer.async_sign_pdf(writer, output=out))
        return out.getvalue()

    def with_dss(self, pdf: bytes) -> bytes:
        """Append the validation data of every signature and timestamp in the file."""
        data = self.pki.evidence(self.signer.certificate)
        data = data.with_more(self.pki.evidence(self.tsa.certificate))
        opened = SignedFile(pdf)
        values = [Validated(each, data) for each in opened.signature_contents()]
        return pdf + add_dss(pdf, values)

    def timestamped(self, pdf: bytes) -> bytes:
        """Append a document timestamp."""
        prepared = prepare_timestamp(pdf, _SHA256, _ROOM)
        token = self.tsa.token(prepared.imprint, _SHA256)
        return pdf + fill_timestamp(prepared, token)

    def timestamped_by_hand(
        self, pdf: bytes, rect: bytes = b"[0 0 0 0]", look: bytes | None = None
    ) -> bytes:
        """Append a document timestamp whose field has an appearance.

        An empty one is honest: EU DSS writes it (finding P5).

        Args:
            pdf: the file.
            rect: value of `/Rect`.
            look: what the appearance draws; None: an empty stream and box.
        """
        opened = SignedFile(pdf)
        drawn, field, value = range(opened.free, opened.free + 3)
        widget = (
            b"<</Type/Annot/Subtype/Widget/FT/Sig/T%s/F 132/Rect%s/P %d 0 R/V %d 0 R"
            b"/AP<</N %d 0 R>>>>"
            % (opened.string(field, b"Sello"), rect, opened.page, value, drawn)
        )
        marked = b"9" * 10
        stamp = (
            b"<</Type/DocTimeStamp/Filter/Adobe.PPKLite/SubFilter/ETSI.RFC3161"
            b"/Contents<%s>/ByteRange[0 %s %s %s]>>"
            % (b"0" * 2 * _ROOM, marked, marked, marked)
        )
        annotations = opened.listed("Annots", field)
        empty = look is None
        appended = opened.append(
            {
                drawn: opened.look(drawn, look or b"", b"[0 0 0 0]" if empty else _BOX),
                field: widget,
                value: stamp,
                opened.page: opened.changed(opened.page, {b"/Annots": annotations}),
                **opened.form_with(field),
            }
        )
        start = appended.index(b"/Contents<", appended.index(stamp[:40])) + 9
        end = start + 2 * _ROOM + 2
        ranges = b"%d %d %d" % (start, end, len(appended) - end)
        hole = b" ".join([marked] * 3)
        appended = appended.replace(hole, ranges.ljust(len(hole)))
        digest = hashlib.sha256(appended[:start] + appended[end:]).digest()
        token = self.tsa.token(digest, _SHA256).hex().encode()
        return appended[: start + 1] + token + appended[start + 1 + len(token) :]

    def renewed(self, pdf: bytes) -> bytes:
        """Append validation data of the newest timestamp, and stamp again."""
        return self.timestamped(self.with_dss(pdf))

    def filled(self, pdf: bytes) -> bytes:
        """Fill the text field `Nombre` and check the box `Acepto`, as readers do."""
        opened = SignedFile(pdf)
        text, box = opened.field("Nombre"), opened.field("Acepto")
        look = opened.free
        drawn = b"/Tx BMC " + line(b"Eva", 2, 4) + b" EMC"
        return opened.append(
            {
                text: opened.changed(
                    text,
                    {
                        b"/V": opened.string(text, b"Eva"),
                        b"/AP": b"<</N %d 0 R>>" % look,
                    },
                ),
                look: opened.look(look, drawn, b"[0 0 120 20]"),
                box: opened.changed(box, {b"/V": b"/Yes", b"/AS": b"/Yes"}),
            }
        )

    def checked(self, pdf: bytes) -> bytes:
        """Check the box `Acepto`."""
        opened = SignedFile(pdf)
        box = opened.field("Acepto")
        return opened.append(
            {box: opened.changed(box, {b"/V": b"/Yes", b"/AS": b"/Yes"})}
        )

    def long_history(self, pdf: bytes) -> bytes:
        """Append what a contract of two more signers gets over the years."""
        for step in (
            self.signed_visibly,
            self.with_dss,
            self.timestamped,
            self.signed_in_form,
            self.renewed,
            self.renewed,
        ):
            pdf = step(pdf)
        return pdf

    def signed_visibly(self, pdf: bytes) -> bytes:
        """Sign with a stamp on page 1."""
        return self.signed(pdf, stamp_y=_STAMP_YS[2])

    def signed_in_form(self, pdf: bytes) -> bytes:
        """Sign the empty field `Vendedor`."""
        return self.signed(pdf, field="Vendedor")

    def stock_signed_visibly(self, pdf: bytes, *, apart: bool = False) -> bytes:
        """Sign with pyHanko as it comes, with a stamp on page 1."""
        return self.stock_signed(pdf, "Otra", box=(160, 300, 290, 340), apart=apart)


Continuation = Callable[[Makers, bytes], bytes]
"""Appends an honest revision."""


@cache
def makers() -> Makers:
    """The makers of this test run."""
    return Makers.now()


def _long_term(do: Makers, pdf: bytes) -> bytes:
    return do.with_dss(do.signed(pdf, timestamp=True))


def _two_stamps(do: Makers) -> bytes:
    first = do.signed(contract(), stamp_y=_STAMP_YS[0])
    return do.signed(first, stamp_y=_STAMP_YS[1])


def _with_streams(do: Makers) -> bytes:
    return do.timestamped(_long_term(do, rewritten(contract(), streams=True)))


_BASES: Final[dict[str, Callable[[Makers], bytes]]] = {
    "B-B": lambda do: do.signed(contract()),
    "B-T": lambda do: do.signed(contract(), timestamp=True),
    "B-LT": lambda do: _long_term(do, contract()),
    "B-LTA": lambda do: do.timestamped(_long_term(do, contract())),
    "P1": lambda do: do.signed(contract(), certify=1),
    "P2": lambda do: do.signed(contract(), certify=2),
    "P3": lambda do: do.signed(contract(), certify=3),
    "two signers": lambda do: do.signed(do.signed(contract())),
    "two stamps": _two_stamps,
    "stock": lambda do: do.stock_signed(contract()),
    "locked": lambda do: do.signed(locked_contract(), field="Vendedor"),
    "xref streams": lambda do: do.signed(rewritten(contract(), streams=True)),
    "xref streams, B-LTA": _with_streams,
    "encrypted, R4": lambda do: do.signed(rewritten(contract(), encrypted=4)),
    "encrypted, R6": lambda do: do.signed(rewritten(contract(), encrypted=6)),
    "dangling": lambda do: do.signed(dangling_contract()),
}
BASES: Final = tuple(_BASES)
"""Names of the signed files that revisions are appended to."""


@cache
def base(name: str) -> bytes:
    """Make a signed file, once a test run."""
    return _BASES[name](makers())


_CLOSED: Final = frozenset({"P1"})
# A certification with P = 2 lets existing signature fields be signed; a new visible
# field is no filling of a form (ISO 32000-2, table 257).
_CERTIFIED: Final = frozenset({"P1", "P2", "P3"})
_ENCRYPTED: Final = frozenset({"encrypted, R4", "encrypted, R6"})
_LOCKED: Final = frozenset({"locked"})
_ANY: Final = frozenset[str]()

CONTINUATIONS: Final[dict[str, tuple[Continuation, frozenset[str]]]] = {
    "next signer": (Makers.signed, _CLOSED),
    "next signer, visible": (Makers.signed_visibly, _CERTIFIED),
    "next signer, B-T": (partial(Makers.signed, timestamp=True), _CLOSED),
    "next signer, stock": (
        partial(Makers.stock_signed, field="Otra"), _CLOSED | _ENCRYPTED,
    ),
    "next signer, stock, visible": (
        Makers.stock_signed_visibly, _CERTIFIED | _ENCRYPTED,
    ),
    "next signer, stock, visible, mark apart": (
        partial(Makers.stock_signed_visibly, apart=True), _CERTIFIED | _ENCRYPTED,
    ),
    "next signer, in a field of the form": (
        Makers.signed_in_form, _CLOSED | _LOCKED,
    ),
    "validation data": (Makers.with_dss, _ANY),
    "document timestamp": (Makers.timestamped, _ANY),
    "document timestamp, empty appearance": (Makers.timestamped_by_hand, _ANY),
    "renewal": (Makers.renewed, _ANY),
    "form filled": (Makers.filled, _CLOSED | _LOCKED),
    "box checked": (Makers.checked, _CLOSED),
    "form filled, then signed": (
        lambda do, pdf: do.signed(do.filled(pdf)), _CLOSED | _LOCKED,
    ),
    "long history": (Makers.long_history, _CERTIFIED | _LOCKED),
}  # fmt: skip
"""Honest revisions by name, with the bases that do not permit them."""
