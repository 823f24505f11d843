"""What one signature is to be, from what stands recorded of it."""

from datetime import datetime

from appliance.domain.activation import ActivationDocument
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner, spoken
from appliance.domain.identity import Credential, Person
from appliance.domain.requests.request import RequestView
from appliance.signing.claims import ClaimedActivation
from worker.pades.algorithms import SignatureMethod
from worker.pades.prepare import SignaturePlan


def signature_plan(
    work: ClaimedActivation,
    item: ActivationDocument,
    view: RequestView,
    person: Person,
    credential: Credential,
    method: SignatureMethod,
    at: datetime,
) -> SignaturePlan:
    """Lay the stamp out, and say what the signature is to be.

    Args:
        work: the claim.
        item: of it.
        view: its request.
        person: who signs.
        credential: with which key.
        method: how that key signs.
        at: the claimed signing time, aware.

    Raises:
        ApplianceError: the stamp has no place, as `lay_out` says.
    """
    params, details = item.params, item.details
    named = StampSigner(person.name, person.cuil, person.locale)
    return SignaturePlan(
        field_name=f"Firma-{item.request}",
        layout=lay_out(params, named, at, view.inspection, details),
        restriction=params.restriction,
        existing=params.field,
        signed_at=at,
        signer_name=person.name,
        certificate=credential.certificate,
        chain=credential.chain,
        method=method,
        picture=work.pictures.get(details.logo.sha256) if details.logo else None,
        spoken=spoken(params, named, at, details),
        reason=params.reason,
        place=params.place,
    )
