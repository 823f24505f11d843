"""People whose passwords a file keeps, and a signature of theirs as a client makes it.

For trials, and for the sample that an installation signs in PREPROD.
"""

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from appliance.cli.demo.client import ApiClient
from appliance.cli.demo.otp import next_code
from appliance.cli.terminal import say
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import format_cuil
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import VouchedBy

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_TASK_WAIT_S: Final = 60.0


def new_person(name: str, email: str) -> dict[str, str]:
    """Somebody with passwords of their own, as the file keeps them."""
    return {
        "nombre": name,
        "email": email,
        "clave": secrets.token_urlsafe(9),
        "claveDeFirma": secrets.token_urlsafe(9),
    }


async def ensure_person(
    front: "ServiceRegistry", cuil: str, told: dict[str, str], vouched_by: VouchedBy
) -> None:
    """Record a person and have a certificate made, where either is missing.

    Args:
        front: an open one.
        cuil: the person's.
        told: of `new_person`.
        vouched_by: who answers for the identity.

    Raises:
        ApplianceError: what stands in the way.
    """
    from appliance.identity.people import NewPersonOrder  # noqa: PLC0415 (heavy)
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        person = await PersonStore(transaction).by_cuil(cuil)
    if person is not None:
        await _ensure_key(front, person.id, told)
        return
    created = await front.people.create_person(
        NewPersonOrder(
            cuil=cuil,
            name=told["nombre"],
            email=told["email"],
            login_password=told["clave"],
            signing_password=told["claveDeFirma"],
            vouched_by=vouched_by,
        )
    )
    await front.tasks.wait(created.task, _TASK_WAIT_S)
    say(f"person {format_cuil(cuil)} {told['nombre']}: certified")
    say(f"  revocation PIN (shown once): {created.revocation_pin}")


async def _ensure_key(
    front: "ServiceRegistry", person: PersonId, told: dict[str, str]
) -> None:
    """Ask again where a key could not be made, or was of an earlier version."""
    from appliance.keys.credential_store import CredentialStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        if await CredentialStore(transaction).active(person) is not None:
            return
    signer = Signer(person, "operator", ("operator",), front.clock.now())
    task = await front.issuing.again(signer, told["claveDeFirma"])
    await front.tasks.wait(task, _TASK_WAIT_S)
    say(f"person {told['nombre']}: certified anew")


async def sign_through_api(
    front: "ServiceRegistry",
    client: ApiClient,
    cuil: str,
    told: dict[str, str],
    request: int,
) -> bytes:
    """Sign in and sign a request, by nothing but the public API; the signed PDF.

    Args:
        front: gives the one-time code that the person's telephone would.
        client: of the API; it is signed in afterwards.
        cuil: the signer's.
        told: of `new_person`.
        request: waits for that person.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`: the API does not list it.
        SystemExit: the API refuses; with its words.
    """
    challenge = client.post("/auth/login", {"usuario": cuil, "password": told["clave"]})
    code = await next_code(front, cuil)
    token = client.post(
        "/auth/otp", {"loginToken": challenge["loginToken"], "codigo": code}
    )
    client.bearer = token["access_token"]
    pending = [entry["solicitudId"] for entry in client.get("/solicitudes")]
    if request not in pending:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    answer = client.post(
        "/solicitudes/firmar",
        {"solicitudId": request, "password": told["claveDeFirma"]},
    )
    return client.fetch(answer["documentoFirmado"])


def load(path: Path) -> Any:
    """What `keep` wrote; an empty table where nothing did."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def keep(path: Path, value: object) -> None:
    """Write a file whole or not at all, for its owner's eyes."""
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(
        json.dumps(value, ensure_ascii=False, indent=2), encoding="utf-8"
    )
    temporary.replace(path)
