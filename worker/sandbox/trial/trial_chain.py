"""Signs a copy of a document several times, with a key of nobody's.

Each signature goes the way of the engine, with the engine's own code: the signature and
the validation data after it. The last one goes as far as any level does, to a document
timestamp and, at renewals, the data of that.
"""

import datetime as dt
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from appliance.domain.appearance.geometry import size_as_seen
from appliance.domain.appearance.stamp import StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import EmptyField, Inspection, SignatureMark
from appliance.domain.errors import ApplianceError
from appliance.domain.requests.levels import ValidationData
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from worker.pades import (
    SignaturePlan,
    Validated,
    add_dss,
    assemble,
    fill_timestamp,
    method_for,
    prepare,
    prepare_timestamp,
)
from worker.pades.appearance.fonts import StampFonts
from worker.pades.incremental_file import GrowingFile
from worker.sandbox.trial.trial_signer import trial_signer

_STAMP_BYTES: Final = 4096
# What stands in the store is read by nobody here; a revision has to be made of it.
_LATER: Final = b"\x30\x00"
_SIGNER: Final = StampSigner("Firma de Prueba", "20000000001", "es")
_APPROVES: Final = frozenset({None, 0})
_DIGEST: Final = "sha256"


@dataclass(frozen=True, slots=True)
class TrialSignature:
    """One signature of a chain.

    Args:
        layout: its stamp; None: it is not seen.
        existing: the document's own field that it fills; None: a new one.
    """

    layout: StampLayout | None = None
    existing: EmptyField | None = None


@dataclass(frozen=True, slots=True)
class SignedCopy:
    """A document after a chain of trial signatures.

    Args:
        pdf: the whole file.
        fields: full names of the signatures' fields, in order.
        marks: where something is seen that was not: by 1-based page, x0, y0, x1, y1
        from its left and top as it is seen, in parts of its width and height.
    """

    pdf: bytes = field(repr=False)
    fields: tuple[str, ...]
    marks: dict[int, list[tuple[float, float, float, float]]]


def chains(
    described: Inspection, fonts: StampFonts | None
) -> list[tuple[TrialSignature, ...]]:
    """Give the chains by which a document is tried.

    Two signers with stamps, the second one on the last page; and one who is not seen,
    followed by one in the document's own field. What earlier signatures do not allow
    is left out, as no signer gets that far either: for some documents that is all.

    Args:
        described: the document.
        fonts: of the stamps; None: nobody is seen.
    """
    facts = described.signing
    found: list[tuple[TrialSignature, ...]] = []
    is_free = described.docmdp is None and facts.permitted is None
    if is_free and not facts.new_locked:
        first = _stamp(described, 1, fonts)
        marks = described.marks
        if first is not None:
            marks = (*marks, SignatureMark(1, first.rect))
        last = _stamp(replace(described, marks=marks), len(described.pages), fonts)
        if first is not None and last is not None:
            found.append((TrialSignature(first), TrialSignature(last)))
    unseen = () if facts.new_locked else (TrialSignature(),)
    own = next((each for each in facts.empty if _is_usable(each)), None)
    if own is not None:
        found.append((*unseen, _in_field(described, own, fonts)))
    elif unseen:
        found.append(unseen)
    return found


def _is_usable(own: EmptyField) -> bool:
    """Say whether anybody may approve the document in a field of it."""
    digests = not own.digests or _DIGEST in own.digests
    return own.usable and digests and own.certifies in _APPROVES


def _stamp(
    described: Inspection, page: int, fonts: StampFonts | None
) -> StampLayout | None:
    """Lay a stamp out; None on a page that has no room for one, or without fonts."""
    if fonts is None:
        return None
    try:
        return lay_out(
            SignParameters(page=page), _SIGNER, dt.datetime.now(dt.UTC), described
        )
    except ApplianceError:
        return None


def _in_field(
    described: Inspection, own: EmptyField, fonts: StampFonts | None
) -> TrialSignature:
    """Sign in the document's own field, with a stamp where it has a place for one."""
    laid = None
    if fonts is not None:
        with suppress(ApplianceError):
            params = SignParameters(field=own.name)
            laid = lay_out(params, _SIGNER, dt.datetime.now(dt.UTC), described)
    return TrialSignature(laid, own)


def sign(
    pdf: bytes,
    chain: Sequence[TrialSignature],
    described: Inspection,
    fonts: StampFonts | None,
    *,
    renewed: bool = True,
) -> SignedCopy:
    """Sign a document by each signature of a chain, and raise it as far as levels go.

    Args:
        pdf: the whole file.
        chain: one signature at least.
        described: the document.
        fonts: of the stamps.
        renewed: whether data follow each signature, and the timestamp; else they stand
            once, between the last signature and the timestamp.

    Raises:
        DocumentRefusedError: the engine cannot do it.
    """
    name = f"Trial{secrets.token_hex(8)}"  # no field of the document's own
    file = GrowingFile((pdf,))
    fields: list[str] = []
    marks: dict[int, list[tuple[float, float, float, float]]] = {}
    signed: list[Validated] = []
    for at, each in enumerate(chain):
        own = each.existing
        fields.append(f"{name}n{at}" if own is None else own.name)
        if each.layout is not None:
            seen = each.layout
            width, height = size_as_seen(described.pages[seen.page - 1])
            box = (
                seen.x / width,
                seen.y / height,
                (seen.x + seen.width) / width,
                (seen.y + seen.height) / height,
            )
            marks.setdefault(seen.page, []).append(box)
        above = described.last_number
        cms = _append_signature(file, each, fields[-1], above, fonts)
        signed.append(Validated(cms, _data()))
        if renewed or at == len(chain) - 1:
            file.append(add_dss(file.content, signed))
            signed.clear()
    token = _append_timestamp(file, cms.rstrip(b"\0"))
    if renewed:
        file.append(add_dss(file.content, [Validated(token, _data(_LATER))]))
    return SignedCopy(file.content, tuple(fields), marks)


def _append_signature(
    file: GrowingFile,
    wanted: TrialSignature,
    name: str,
    above: int,
    fonts: StampFonts | None,
) -> bytes:
    """Append one signature; give its CMS, filled up with zeros."""
    signer = trial_signer()
    method = method_for(signer.certificate)
    own = wanted.existing
    plan = SignaturePlan(
        field_name=name,
        layout=wanted.layout,
        restriction=Restriction.NO_VALUE,
        signed_at=dt.datetime.now(dt.UTC),
        signer_name="Trial",
        certificate=signer.certificate,
        chain=(),
        method=method,
        existing=None if own is None else own.name,
        above=above,
    )
    prepared = prepare(file.content, plan, fonts)
    increment = assemble(
        prepared.increment,
        contents_at=prepared.contents_at,
        contents_length=prepared.contents_length,
        signed_attributes=prepared.signed_attributes,
        signature=signer.sign(prepared.digest),
        method=method,
        certificate=signer.certificate,
        chain=(),
    )
    start = prepared.contents_at
    contents = bytes.fromhex(
        increment[start : start + prepared.contents_length].decode("ascii")
    )
    file.append(increment)
    return contents


def _data(*ocsps: bytes) -> ValidationData:
    """Validation data of a trial signature."""
    return ValidationData(certificates=(trial_signer().certificate,), ocsps=ocsps)


def _append_timestamp(file: GrowingFile, token: bytes) -> bytes:
    """Append a document timestamp; give its token, filled up with zeros.

    Args:
        file: the signed document.
        token: any CMS: what counts is which objects a timestamp changes.
    """
    signer = trial_signer()
    digest = method_for(signer.certificate).digest
    stamp = prepare_timestamp(file.content, digest, _STAMP_BYTES)
    file.append(fill_timestamp(stamp, token))
    return token + bytes(_STAMP_BYTES - len(token))
