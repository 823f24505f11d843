"""What a trial needs once: integrator, people, console user, demo site.

Passwords are kept in files of the data folder that only its owner may read, so
that a second run finds what the first one made.
"""

import json
import secrets
from pathlib import Path
from typing import Any, Final

from appliance.bootstrap import Front, open_front
from appliance.commands.demo_host import (
    DemoHostFiles,
    has_key,
    host_address,
    keep_key,
)
from appliance.commands.sample import sample_pdf
from appliance.commands.terminal import say
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.person import format_cuil
from appliance.domain.request import Signer
from appliance.domain.vocab import VouchedBy
from appliance.services.people import NewPersonOrder
from appliance.settings import Settings
from appliance.settings.web import origin_of

INTEGRATOR: Final = "demo"
PEOPLE: Final = (
    ("20055361682", "Ana María Núñez", "ana@demo.example"),
    ("20267565393", "Bruno Díaz", "bruno@demo.example"),
)
CONSOLE_USER: Final = "admin"
_TASK_WAIT_S: Final = 60.0


async def set_up(settings: Settings) -> int:
    """Make what is missing; the exit status.

    Args:
        settings: of a trial.

    Raises:
        ApplianceError: `NOT_A_TRIAL`, or what stands in the way.
    """
    refuse_outside_trial(settings)
    async with open_front(settings, SystemClock(), "operator") as front:
        async with front.core.store.read() as records:
            integrator = await records.people.integrator(INTEGRATOR)
        if integrator is None:
            await front.integrators.create(
                "operator", INTEGRATOR, "Integrador de prueba"
            )
        people = load_people(settings)
        for cuil, name, email in PEOPLE:
            if cuil not in people:
                people[cuil] = _new_person(name, email)
                # Kept before the person is made: a kill between the two leaves
                # a password without a person, and not the other way round.
                _keep(_people_file(settings), people)
            await _ensure_person(front, cuil, people[cuil])
        await _ensure_console_user(front, settings)
        await _ensure_site(front, settings)
    _write_env(settings, people)
    (settings.data_dir / "demo.pdf").write_bytes(sample_pdf())
    return 0


def _new_person(name: str, email: str) -> dict[str, str]:
    return {
        "nombre": name,
        "email": email,
        "clave": secrets.token_urlsafe(9),
        "claveDeFirma": secrets.token_urlsafe(9),
    }


async def _ensure_person(front: Front, cuil: str, told: dict[str, str]) -> None:
    async with front.core.store.read() as records:
        person = await records.people.by_cuil(cuil)
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
            vouched_by=VouchedBy.DEMO,
        )
    )
    await front.tasks.wait(created.task, _TASK_WAIT_S)
    say(f"person {format_cuil(cuil)} {told['nombre']}: certified")
    say(f"  revocation PIN (shown once): {created.revocation_pin}")


async def _ensure_key(front: Front, person: PersonId, told: dict[str, str]) -> None:
    """Ask again where a key could not be made, or was of an earlier version."""
    async with front.core.store.read() as records:
        if await records.credentials.active(person) is not None:
            return
    signer = Signer(person, "operator", ("operator",), front.clock.now())
    task = await front.issuing.again(signer, told["claveDeFirma"])
    await front.tasks.wait(task, _TASK_WAIT_S)
    say(f"person {told['nombre']}: certified anew")


async def _ensure_console_user(front: Front, settings: Settings) -> None:
    if any(user.name == CONSOLE_USER for user in await front.console.users()):
        return
    password = load_console(settings).get("clave") or secrets.token_urlsafe(12)
    _keep(_console_file(settings), {"usuario": CONSOLE_USER, "clave": password})
    await front.console.create_user("operator", CONSOLE_USER, password)


async def _ensure_site(front: Front, settings: Settings) -> None:
    """Register the demo site as an integrator's page, with a key of its own."""
    folder = settings.data_dir
    listen = host_address(folder)
    origin = f"http://{listen}"
    integrator = await front.integrators.get(INTEGRATOR)
    domains = await front.integrators.domains(INTEGRATOR)
    if all(domain.origin != origin for domain in domains):
        await front.integrators.add_domain("operator", INTEGRATOR, origin)
    if not has_key(folder):
        made = await front.integrators.create_key(
            "operator", INTEGRATOR, "demo site", None
        )
        keep_key(folder, made.secret)
    cuil, name, email = PEOPLE[0]
    DemoHostFiles(
        listen=listen,
        web_url=settings.web.web_url,
        iframe_url=settings.web.iframe_url,
        integrator_id=INTEGRATOR,
        event_prefix=integrator.event_prefix or settings.event_prefix,
        download_origins=(origin_of(settings.web.base_url), settings.web.iframe_url),
        user={"cuil": format_cuil(cuil), "email": email, "name": name},
    ).write(folder)


def _write_env(settings: Settings, people: dict[str, dict[str, str]]) -> None:
    """Keep the first person's access as shell variables, for a try with curl."""
    cuil = PEOPLE[0][0]
    values = {
        "BASE_URL": settings.web.base_url,
        "USUARIO": format_cuil(cuil),
        "PASSWORD": people[cuil]["clave"],
        "SIGN_PASSWORD": people[cuil]["claveDeFirma"],
    }
    path = settings.data_dir / "demo.env"
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}='{value}'\n" for key, value in values.items()))


def _people_file(settings: Settings) -> Path:
    return settings.data_dir / "demo.json"


def _console_file(settings: Settings) -> Path:
    return settings.data_dir / "demo-console.json"


def load_people(settings: Settings) -> dict[str, dict[str, str]]:
    """The demo people's passwords by CUIL; empty before `set_up`.

    Args:
        settings: of a trial.
    """
    people: dict[str, dict[str, str]] = _load(_people_file(settings))
    return people


def load_console(settings: Settings) -> dict[str, str]:
    """The console user's name and password; empty before `set_up`.

    Args:
        settings: of a trial.
    """
    told: dict[str, str] = _load(_console_file(settings))
    return told


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _keep(path: Path, value: object) -> None:
    """Write a file whole or not at all, for its owner's eyes."""
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(
        json.dumps(value, ensure_ascii=False, indent=2), encoding="utf-8"
    )
    temporary.replace(path)


def refuse_outside_trial(settings: Settings) -> None:
    """Refuse what is for trials alone.

    Args:
        settings: of the installation.

    Raises:
        ApplianceError: `NOT_A_TRIAL`.
    """
    if not settings.trial:
        raise ApplianceError(ErrorCode.NOT_A_TRIAL)
