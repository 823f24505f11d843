"""What a trial needs once: integrator, people, console user, demo site.

Passwords are kept in files of the data folder that only its owner may read, so
that a second run finds what the first one made.
"""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli.demo.client import own_address
from appliance.cli.demo.host_files import (
    DemoHostFiles,
    host_address,
    keep_key,
    kept_key,
)
from appliance.cli.demo.network import VISIT_KEY, certificate_file, shared_address
from appliance.cli.demo.people import ensure_person, keep, load, new_person
from appliance.cli.demo.sample import sample_pdf
from appliance.cli.fronts import operators_front
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope, read_api_key
from appliance.domain.people.identity import format_cuil
from appliance.domain.vocab import VouchedBy
from appliance.settings import Settings
from appliance.settings.web import origin_of

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

INTEGRATOR: Final = "demo"
PEOPLE: Final = (
    ("20055361682", "Ana María Núñez", "ana@demo.example"),
    ("20267565393", "Bruno Díaz", "bruno@demo.example"),
)
CONSOLE_USER: Final = "admin"
_SIGN_QUERY: Final = "/?proceso={procesoId}&solicitud={solicitudId}&lote={loteId}"
"""End of the address in mails; the demo site opens the request that it names."""


async def set_up(settings: Settings) -> int:
    """Make what is missing; the exit status.

    Args:
        settings: of a trial.

    Raises:
        ApplianceError: `NOT_A_TRIAL`, or what stands in the way.
    """
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)

    refuse_outside_trial(settings)
    async with operators_front(settings) as front:
        async with front.core.store.read() as transaction:
            integrator = await PersonStore(transaction).integrator(INTEGRATOR)
        if integrator is None:
            await front.integrators.create(
                "operator", INTEGRATOR, "Integrador de prueba"
            )
            if settings.mail.is_on:
                await front.integrators.set_mail(
                    "operator", INTEGRATOR, mails_signers=True, reminder_days=(3, 7)
                )
        people = load_people(settings)
        for cuil, name, email in PEOPLE:
            if cuil not in people:
                people[cuil] = new_person(name, email)
                # Kept before the person is made: a kill between the two leaves
                # a password without a person, and not the other way round.
                keep(_people_file(settings), people)
            await ensure_person(front, cuil, people[cuil], VouchedBy.DEMO)
        await _ensure_console_user(front, settings)
        await _ensure_site(front, settings)
        await _ensure_sign_url(front, settings)
    _write_env(settings, people)
    (settings.data_dir / "demo.pdf").write_bytes(sample_pdf())
    return 0


async def _ensure_console_user(front: "ServiceRegistry", settings: Settings) -> None:
    if any(user.name == CONSOLE_USER for user in await front.console.users()):
        return
    password = load_console(settings).get("clave") or secrets.token_urlsafe(12)
    keep(_console_file(settings), {"usuario": CONSOLE_USER, "clave": password})
    await front.console.create_user("operator", CONSOLE_USER, password)


async def _ensure_site(front: "ServiceRegistry", settings: Settings) -> None:
    """Register the demo site as an integrator's page, with a key of its own.

    The key may do everything, so that the whole API can be tried with it.
    """
    folder = settings.data_dir
    listen = host_address(folder)
    origin = site_origin(settings, listen)
    integrator = await front.integrators.get(INTEGRATOR)
    domains = await front.integrators.domains(INTEGRATOR)
    if all(domain.origin != origin for domain in domains):
        await front.integrators.add_domain(
            "operator", INTEGRATOR, origin, in_private_network=True
        )
    if not await _has_key(front, settings):
        made = await front.integrators.create_key(
            "operator", INTEGRATOR, "demo site", scopes=tuple(ApiKeyScope)
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
        mail_listen=caught_at(settings),
        user={"cuil": format_cuil(cuil), "email": email, "name": name},
        public_origin=origin if shared_address(settings) else "",
        service_url=own_address(settings),
        visit_key_file=VISIT_KEY,
    ).write(folder)


async def _ensure_sign_url(front: "ServiceRegistry", settings: Settings) -> None:
    """Have mails lead to the demo site, where they do not lead elsewhere already.

    An address that somebody has set stays; the site's own follows its origin.
    """
    if not settings.mail.is_on:
        return
    origin = site_origin(settings, host_address(settings.data_dir))
    wanted = f"{origin}{_SIGN_QUERY}"
    present = (await front.integrators.get(INTEGRATOR)).sign_url or ""
    if present != wanted and (not present or present.endswith(_SIGN_QUERY)):
        await front.integrators.set_mail("operator", INTEGRATOR, sign_url=wanted)


def site_origin(settings: Settings, listen: str) -> str:
    """The demo site's origin in browsers.

    Args:
        settings: of the trial.
        listen: `host:port` where the site listens.
    """
    address = shared_address(settings)
    port = listen.rpartition(":")[2]
    return f"https://{address}:{port}" if address else f"http://{listen}"


def caught_at(settings: Settings) -> str:
    """Where the trial's mails are caught, `host:port`; empty where they are not.

    Args:
        settings: of the trial.
    """
    mail = settings.mail
    is_ours = mail.host == "127.0.0.1" and mail.tls == "none"
    return f"{mail.host}:{mail.server_port}" if is_ours else ""


async def _has_key(front: "ServiceRegistry", settings: Settings) -> bool:
    """Whether the site has a key of all scopes; an earlier version's has fewer."""
    kept = read_api_key(kept_key(settings.data_dir), settings.environment)
    return kept is not None and any(
        key.id == kept.id and len(key.scopes) == len(ApiKeyScope)
        for key in await front.integrators.keys(INTEGRATOR)
    )


def _write_env(settings: Settings, people: dict[str, dict[str, str]]) -> None:
    """Keep what a try with curl needs as shell variables: a person's, and a key."""
    cuil = PEOPLE[0][0]
    values = {
        "BASE_URL": settings.web.base_url,
        "USUARIO": format_cuil(cuil),
        "PASSWORD": people[cuil]["clave"],
        "SIGN_PASSWORD": people[cuil]["claveDeFirma"],
        "WEB_URL": settings.web.web_url,
        "IFRAME_URL": settings.web.iframe_url,
        "API_KEY": kept_key(settings.data_dir),
    }
    lines = [f"{key}='{value}'\n" for key, value in values.items()]
    if shared_address(settings):
        # curl trusts the trial's own certificate in that shell.
        lines.append(f"export CURL_CA_BUNDLE='{certificate_file(settings)}'\n")
    path = settings.data_dir / "demo.env"
    path.touch(mode=0o600)
    path.write_text("".join(lines))


def _people_file(settings: Settings) -> Path:
    return settings.data_dir / "demo.json"


def _console_file(settings: Settings) -> Path:
    return settings.data_dir / "demo-console.json"


def load_people(settings: Settings) -> dict[str, dict[str, str]]:
    """The demo people's passwords by CUIL; empty before `set_up`.

    Args:
        settings: of a trial.
    """
    people: dict[str, dict[str, str]] = load(_people_file(settings))
    return people


def load_console(settings: Settings) -> dict[str, str]:
    """The console user's name and password; empty before `set_up`.

    Args:
        settings: of a trial.
    """
    told: dict[str, str] = load(_console_file(settings))
    return told


def refuse_outside_trial(settings: Settings) -> None:
    """Refuse what is for trials alone.

    Args:
        settings: of the installation.

    Raises:
        ApplianceError: `NOT_A_TRIAL`.
    """
    if not settings.trial:
        raise ApplianceError(ErrorCode.NOT_A_TRIAL)
