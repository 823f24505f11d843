"""What anybody may know of a signature, by the code in its stamp.

Whoever has the code has seen the stamp, which shows who signed and when. So the page
behind it confirms that, and tells the hashes by which a copy can be compared: a
document has another one after each further signature and timestamp. It hands out
neither the document nor its name, nor any number of the signer.

It confirms only what the file that is kept proves (`SignatureProofs`): who signed and
when is read from there, and not from the record.

Source: decisions "verification page".
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.details import CODE_CHARACTERS, CODE_LENGTH
from appliance.domain.appearance.text import mask_name
from appliance.domain.documents.verification import Answer, SignatureReport
from appliance.domain.requests.request import SignedVersion
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.signature_proof import (
    SignaturePlace,
    SignatureProof,
    SignatureProofs,
)

# What people and Crockford's base 32 hold for the same.
_SAME: Final = str.maketrans("OIL", "011")
_BETWEEN: Final = re.compile(r"[\s\u200b\ufeff._\u00ad\u2010-\u2015\u2212-]+")
"""What people and their programs put between the characters of a code."""
_LONGEST_TYPED: Final = 200


def read_code(typed: str) -> str | None:
    """The code that somebody means.

    Args:
        typed: as it was scanned, copied or typed: in any case, with blanks and
            hyphens wherever they are.

    Returns:
        As it is kept; None for what cannot be a code.
    """
    if len(typed) > _LONGEST_TYPED:
        return None
    code = _BETWEEN.sub("", typed).upper().translate(_SAME)
    if len(code) != CODE_LENGTH or not set(code) <= set(CODE_CHARACTERS):
        return None
    return code


@dataclass(frozen=True, slots=True)
class KnownSignature:
    """What the page of a signature tells."""

    answer: Answer
    """*Yes*: it was verified in the file that is kept, and the rest is read from
    there. Else the rest is what the record says."""
    signer: str
    """The name, masked."""
    signed_at: datetime
    newest: SignedVersion
    """Of the document with this signature."""
    earlier: tuple[SignedVersion, ...] = ()
    """What it was before something was appended to it, newest first; as far as the
    newest one begins with it."""
    is_code_in_document: bool = False
    """The code stands in the document, among what was signed."""


class Verification:
    """Looks signatures up.

    Args:
        store: the record.
        proofs: verifies them in their files.
    """

    def __init__(self, store: Database, proofs: SignatureProofs) -> None:
        self._store = store
        self._proofs = proofs

    async def look(
        self, code: str, admit: Callable[[], bool] = lambda: True
    ) -> KnownSignature | None:
        """What is known of the published signature with a code.

        Args:
            code: as it was scanned or typed.
            admit: see `SignatureProofs.prove`.

        Returns:
            None for a code of nothing, or of nothing that was published.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        asked = read_code(code)
        if asked is None:
            return None
        async with self._store.read() as transaction:
            found = await ActivationStore(transaction).by_code(asked)
            if found is None:
                return None
            person = await PersonStore(transaction).get(found.person)
            documents = DocumentStore(transaction)
            holding = await documents.holding(found.request)
            signed = await documents.signed(holding[0].request) if holding else None
        if person is None or signed is None:
            return None
        place = SignaturePlace(
            code=asked,
            request=found.request,
            cuil=person.cuil,
            field=found.field,
            integrator=signed.integrator,
            versions=tuple(holding),
        )
        proof = await self._proofs.prove(place, admit)
        recorded = KnownSignature(
            proof.answer, mask_name(person.name), found.signed_at, holding[0]
        )
        if proof.answer is not Answer.YES or proof.report is None:
            return recorded
        return _proven(recorded, proof, proof.report, holding[1:])


def _proven(
    recorded: KnownSignature,
    proof: SignatureProof,
    report: SignatureReport,
    before: Sequence[SignedVersion],
) -> KnownSignature:
    """What the file says of a signature that was verified in it."""
    told = report.signed_at or report.timestamp
    newest = recorded.newest
    return replace(
        recorded,
        signer=mask_name(report.signer),
        signed_at=recorded.signed_at if told is None else datetime.fromisoformat(told),
        newest=replace(newest, level=report.level or newest.level),
        earlier=tuple(each for each in before if each.sha256 in proof.earlier),
        is_code_in_document=proof.is_code_in_document,
    )
