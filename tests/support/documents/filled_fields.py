"""Signed contracts with a field that is filled in afterwards."""

from collections.abc import Mapping
from typing import Final

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import makers
from worker.sandbox.verify.verify import verify

WIDGET: Final = b"/Type/Annot/Subtype/Widget/F 4/P 3 0 R"
TEXT: Final = b"<<%s/FT/Tx/T(Monto)%%s/DA(/Helv 8 Tf)/Rect[20 60 140 80]" % WIDGET
"""A text field of 120 by 20 points that lacks the end of its dictionary."""
_BOX: Final = b"[0 0 120 20]"


def filled_in(
    field: bytes,
    entries: Mapping[bytes, bytes | None],
    drawn: bytes | None = None,
    *,
    more: Mapping[int, bytes] | None = None,
    resources: bytes = b"",
) -> tuple[Answer, str]:
    """Sign the contract with another field 21, and write that again.

    Args:
        field: the field as it is signed.
        entries: its new entries.
        drawn: content of a new appearance; None: it keeps the one it has.
        more: further new objects, by their distance from the appearance's number.
        resources: of the new appearance; those of the contract if empty. `%d` is the
            number of its first further object.

    Returns:
        The verdict, and the reason of what follows.
    """
    file = SignedFile(makers().signed(contract({21: field})))
    look = file.free
    entries = dict(entries)
    objects = {look + far: body for far, body in (more or {}).items()}
    if drawn is not None:
        entries.setdefault(b"/AP", b"<</N %d 0 R>>" % look)
        objects[look] = file.look(look, drawn, _BOX)
        if resources:
            form = b"/Subtype/Form/BBox%s/Resources" % _BOX
            objects[look] = file.stream(look, drawn, form + resources % (look + 1))
    objects[21] = file.changed(21, entries)
    report = verify(file.append(objects), [makers().root])
    return report.verdict, report.signatures[0].changes.reason


def filled_number(field: bytes) -> int:
    """Return the number that `filled_in` gives the new appearance.

    Args:
        field: the field as it is signed.
    """
    return SignedFile(makers().signed(contract({21: field}))).free
