"""What is done to somebody's key: revoke, renew, certify outside, begin anew."""

from collections.abc import Sequence
from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import proof, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, go, page
from admin_ui.session import uploads
from appliance.domain.console.lists import PersonView
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys.credentials import CredentialView
from appliance.domain.vocab import CredentialState, RevocationReason
from appliance.pki.validation.certificate_rules import pem_of
from appliance.web.responses import file_response

blueprint = Blueprint(
    "credentials", __name__, url_prefix="/admin/people/<person_id>/credentials"
)

_PEM: Final = "application/pem-certificate-chain"


async def _one(person_id: str, credential_id: str) -> dict[str, Any]:
    """A person and one of their credentials.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`, `CREDENTIAL_NOT_FOUND`.
    """
    person = PersonId(person_id)
    return {
        "view": await core().views.person(person),
        "credential": await core().credentials.get(CredentialId(credential_id), person),
    }


def _back(person_id: str, done: str) -> Response:
    return go("person.show", person_id=person_id, done=done)


@blueprint.get("/<credential_id>/certificate.pem")
async def download(person_id: str, credential_id: str) -> Response:
    """`GET …/credentials/{id}/certificate.pem`: the certificate and its chain, PEM.

    Raises:
        ApplianceError: as `_one`; `CHAIN_MALFORMED` for one that cannot be read.
    """
    credential = (await _one(person_id, credential_id))["credential"]
    content = pem_of((credential.certificate, *credential.chain))
    name = f"{credential.cuil}-{credential.serial}.pem"
    return file_response(content, _PEM, name)


@blueprint.get("/<credential_id>/revoke")
async def ask_revoke(person_id: str, credential_id: str) -> Response:
    """`GET …/credentials/{id}/revoke`: why, and what it means."""
    return await page(
        "credential_revoke.html",
        faults=NONE,
        chosen="",
        **await _one(person_id, credential_id),
    )


@blueprint.post("/<credential_id>/revoke")
async def revoke(person_id: str, credential_id: str) -> Response:
    """`POST …/credentials/{id}/revoke`."""
    given = session.form().text("reason")
    found = await _one(person_id, credential_id)
    reasons = {reason.value: reason for reason in RevocationReason}
    if given not in reasons:
        faults = Faults({"reason": words.say("Choose an option from the list.")})
        return await again("credential_revoke.html", faults, chosen=given, **found)
    await core().credentials.revoke(
        CredentialId(credential_id), reasons[given], session.actor()
    )
    return _back(person_id, "revocation-asked")


async def _renewable(person_id: str, credential_id: str) -> dict[str, Any]:
    """A person and one of their credentials, which the internal CA can certify.

    Raises:
        ApplianceError: as `_one`; `CREDENTIAL_STATE` for one that is not in use,
            `CERTIFICATE_ISSUED_OUTSIDE`.
    """
    found = await _one(person_id, credential_id)
    credential = found["credential"]
    if credential.outside:
        raise ApplianceError(ErrorCode.CERTIFICATE_ISSUED_OUTSIDE)
    if credential.state is not CredentialState.ACTIVE:
        raise ApplianceError(
            ErrorCode.CREDENTIAL_STATE, params={"estado": credential.state.value}
        )
    return found


@blueprint.get("/<credential_id>/renew")
async def ask_renew(person_id: str, credential_id: str) -> Response:
    """`GET …/credentials/{id}/renew`: what it means.

    Raises:
        ApplianceError: as `renew`.
    """
    found = await _renewable(person_id, credential_id)
    return await page("credential_renew.html", **found)


@blueprint.post("/<credential_id>/renew")
async def renew(person_id: str, credential_id: str) -> Response:
    """`POST …/credentials/{id}/renew`: the internal CA certifies the key again.

    Raises:
        ApplianceError: as `_renewable`; `CERTIFICATE_STATE`.
    """
    credential = (await _renewable(person_id, credential_id))["credential"]
    asked = await core().views.renewals(credential.person)
    if credential.id not in asked or not asked[credential.id].is_open:
        await core().certificates.renew(credential.id, session.actor())
    return _back(person_id, "renewal-asked")


@blueprint.get("/<credential_id>/chain")
async def ask_chain(person_id: str, credential_id: str) -> Response:
    """`GET …/credentials/{id}/chain`: the file of an outside CA."""
    found = await _one(person_id, credential_id)
    return await page("credential_chain.html", faults=NONE, **found)


@blueprint.post("/<credential_id>/chain")
@uploads
async def import_chain(person_id: str, credential_id: str) -> Response:
    """`POST …/credentials/{id}/chain`."""
    found = await _one(person_id, credential_id)
    file = session.form().files.get("file")
    if file is None:
        faults = Faults({"file": words.say("Choose a file with certificates.")})
        return await again("credential_chain.html", faults, **found)
    try:
        await core().credentials.import_chain(
            CredentialId(credential_id), file.content, session.actor()
        )
    except ApplianceError as exc:
        faults = faults_of(exc, {"cadena": "file", "BUSY": "file"})
        return await again("credential_chain.html", faults, **found)
    return _back(person_id, "chain-imported")


@blueprint.get("/pin")
async def ask_pin(person_id: str) -> Response:
    """`GET …/credentials/pin`: that the earlier PIN ends, and the own code."""
    view = await core().views.person(PersonId(person_id))
    return await page("pin_new.html", faults=NONE, view=view)


@blueprint.post("/pin")
async def new_pin(person_id: str) -> Response:
    """`POST …/credentials/pin`: a new revocation PIN, shown this once."""
    view = await core().views.person(PersonId(person_id))
    faults = await proof.confirm()
    if faults:
        return await again("pin_new.html", faults, view=view)
    pin = await core().revocation_pins.renew(view.row.id, session.actor())
    base_url = core().settings.web.base_url
    return await page("pin_created.html", view=view, pin=pin, base_url=base_url)


def is_revoked(credentials: Sequence[CredentialView]) -> bool:
    """Return whether somebody's last certificate is revoked and none is in use.

    Args:
        credentials: all of theirs, newest first.
    """
    over = {CredentialState.REVOKING, CredentialState.REVOKED}
    in_use = any(one.state is CredentialState.ACTIVE for one in credentials)
    return bool(credentials) and credentials[0].state in over and not in_use


async def _reissued(view: PersonView) -> dict[str, Any]:
    credentials = await core().credentials.of(view.row.id)
    two = proof.needs_two()
    return {"view": view, "two": two, "revoked": is_revoked(credentials)}


@blueprint.get("/reissue")
async def ask_reissue(person_id: str) -> Response:
    """`GET …/credentials/reissue`: what it means, and the officer's own code."""
    view = await core().views.person(PersonId(person_id))
    return await page("person_reissue.html", faults=NONE, **await _reissued(view))


@blueprint.post("/reissue")
async def reissue(person_id: str) -> Response:
    """`POST …/credentials/reissue`: revoke, forget the secrets, make a link."""
    view = await core().views.person(PersonId(person_id))
    witness, faults = await proof.of_two()
    if faults:
        return await again("person_reissue.html", faults, **await _reissued(view))
    made = await core().reissue.reissue(session.actor(), view.row.id, witness)
    return await page("person_invited.html", made=made, row=view.row)
