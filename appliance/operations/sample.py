"""`rubrica sample`: a document signed through the API and verified, in PREPROD.

What an installation is to be able to do, done once: setup ends on it. The person who
signs is the installation's own; the passwords are kept beside the keys, for whoever
may read those.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from appliance.cli.demo.client import ApiClient, own_address
from appliance.cli.demo.people import (
    ensure_person,
    keep,
    load,
    new_person,
    sign_through_api,
)
from appliance.cli.demo.sample import sample_pdf
from appliance.cli.fronts import handle
from appliance.cli.installation.ready import ask_until_ready
from appliance.cli.terminal import say, write_file
from appliance.cli.verify import report_on
from appliance.domain.vocab import Environment, VouchedBy
from appliance.settings import Settings, SettingsError

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_INTEGRATOR: Final = "prueba"
_FILE: Final = "sample-person.json"
_CUIL: Final = "20000000028"
_PERSON: Final = ("Prueba de instalación", "prueba@localhost.invalid")


def person_file(settings: Settings) -> Path:
    """Where the passwords of who signs it are kept."""
    return settings.document_key_file.with_name(_FILE)


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `sample`.

    Args:
        commands: of the `rubrica` parser.
    """
    sample = commands.add_parser(
        "sample",
        help="sign a sample through the API of this machine and verify it (PREPROD)",
        epilog="Exit status: 0, it is signed and valid; 1, it is not.",
    )
    sample.add_argument("--out", type=Path, help="file for the signed PDF")
    sample.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for an API that is not ready yet (default: not at all)",
    )
    handle(sample, _sample)


async def _sample(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    settings = front.settings
    if settings.environment is not Environment.PREPROD:
        msg = "sample: signs in PREPROD alone: in PROD each signature binds somebody"
        raise SettingsError(msg)
    if args.wait and settings.web.listen("api"):
        is_ready, words = ask_until_ready(settings, args.wait)
        if not is_ready:
            say(words)
            return 1
    told = await _person(front, settings)
    request = await _request(front)
    client = ApiClient(own_address(settings), settings.web.base_url)
    signed = await sign_through_api(front, client, _CUIL, told, request)
    report = await report_on(front.core, signed)
    if args.out is not None:
        write_file(args.out, signed)
    verdict = "valid" if report.valid else "NOT valid"
    say(f"request {request}: signed through the API, {len(signed)} bytes, {verdict}")
    return 0 if report.valid else 1


async def _person(front: "ServiceRegistry", settings: Settings) -> dict[str, Any]:
    """Who signs, with a certificate; made where missing."""
    path = person_file(settings)
    told: dict[str, Any] = load(path)
    if not told:
        told = new_person(*_PERSON)
        # Before the person is made: a kill between the two leaves passwords without
        # a person, and not the other way round.
        keep(path, told)
    await ensure_person(front, _CUIL, told, VouchedBy.OFFICER)
    return told


async def _request(front: "ServiceRegistry") -> int:
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)
    from appliance.requests.intake import IntakeOrder  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        integrator = await PersonStore(transaction).integrator(_INTEGRATOR)
    if integrator is None:
        await front.integrators.create("operator", _INTEGRATOR, _PERSON[0])
    return await front.intake.create_request(
        IntakeOrder(
            integrator_code=_INTEGRATOR,
            cuil=_CUIL,
            file_name="contrato.pdf",
            expires=None,
            origin="operador",
            actor="operator",
        ),
        sample_pdf(),
    )
