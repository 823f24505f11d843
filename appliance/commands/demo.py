"""`rubrica demo`: the people of a trial, and a signature as a client makes it.

`setup` makes what a trial needs once and keeps the people's passwords in a file
of the data folder; `sign` uses nothing but the public API, as any client would.
"""

import argparse
import json
import secrets
import urllib.error
import urllib.request
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from appliance.bootstrap import Front, open_front
from appliance.commands import otp
from appliance.commands.otp import next_code
from appliance.commands.sample import sample_pdf
from appliance.commands.terminal import run_async, say, table
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.person import format_cuil
from appliance.domain.vocab import VouchedBy
from appliance.services.intake import IntakeOrder
from appliance.services.people import NewPersonOrder
from appliance.settings import Settings, load_settings

_INTEGRATOR: Final = "demo"
_PEOPLE: Final = (
    ("20055361682", "Ana María Núñez", "ana@demo.example"),
    ("20267565393", "Bruno Díaz", "bruno@demo.example"),
)
_TASK_WAIT_S: Final = 60.0
_CALL_S: Final = 60


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `demo` and its parts.

    Args:
        commands: of the `rubrica` parser.
    """
    demo = commands.add_parser("demo", help="for trials: sample people and documents")
    parts = demo.add_subparsers(dest="part", required=True)
    otp.register(parts)
    setup = parts.add_parser("setup", help="make the demo integrator and people")
    setup.set_defaults(run=_setup)
    show = parts.add_parser("show", help="addresses, people and their passwords")
    show.set_defaults(run=_show)
    request = parts.add_parser("request", help="one more sample document to sign")
    request.set_defaults(run=_request)
    sign = parts.add_parser("sign", help="sign a sample through the public API")
    sign.add_argument("--out", type=Path, required=True, help="the signed PDF")
    sign.set_defaults(run=_sign)
    for point in sorted(entry_points(group="rubrica.demo")):
        point.load()(parts)


def _setup(args: argparse.Namespace) -> int:
    return run_async(_set_up, args)


async def _set_up(settings: Settings) -> int:
    _refuse_outside_trial(settings)
    async with open_front(settings, SystemClock(), "operator") as front:
        async with front.core.store.read() as records:
            integrator = await records.people.integrator(_INTEGRATOR)
        if integrator is None:
            await front.integrators.create(
                "operator", _INTEGRATOR, "Integrador de prueba"
            )
        people = load_people(settings)
        for cuil, name, email in _PEOPLE:
            if cuil not in people:
                people[cuil] = {
                    "nombre": name,
                    "email": email,
                    "clave": secrets.token_urlsafe(9),
                    "claveDeFirma": secrets.token_urlsafe(9),
                }
                # Kept before the person is made: a kill between the two leaves
                # a password without a person, and not the other way round.
                _save_people(settings, people)
            await _ensure_person(front, cuil, people[cuil])
    _write_new_env(settings, people)
    (settings.data_dir / "demo.pdf").write_bytes(sample_pdf())
    return 0


def _write_new_env(settings: Settings, people: dict[str, dict[str, str]]) -> None:
    """Keep the first person's access as shell variables, for a try with curl."""
    cuil = _PEOPLE[0][0]
    values = {
        "BASE_URL": settings.web.base_url,
        "USUARIO": format_cuil(cuil),
        "PASSWORD": people[cuil]["clave"],
        "SIGN_PASSWORD": people[cuil]["claveDeFirma"],
    }
    path = settings.data_dir / "demo.env"
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}='{value}'\n" for key, value in values.items()))


def _show(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    _refuse_outside_trial(settings)
    say(f"API: {settings.web.base_url}")
    rows = [
        (format_cuil(cuil), told["nombre"], told["clave"], told["claveDeFirma"])
        for cuil, told in load_people(settings).items()
    ]
    say(table(("usuario", "nombre", "password", "signing password"), rows))
    say("codes of the second factor: rubrica demo otp USUARIO")
    return 0


async def _ensure_person(front: Front, cuil: str, told: dict[str, str]) -> None:
    async with front.core.store.read() as records:
        person = await records.people.by_cuil(cuil)
    if person is not None:
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


def _request(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        _refuse_outside_trial(settings)
        async with open_front(settings, SystemClock(), "operator") as front:
            say(f"solicitud {await _new_request(front)}")
        return 0

    return run_async(work, args)


async def _new_request(front: Front) -> int:
    return await front.intake.create_request(
        IntakeOrder(
            integrator_code=_INTEGRATOR,
            cuil=_PEOPLE[0][0],
            file_name="contrato.pdf",
            expires=None,
            origin="operador",
            actor="operator",
        ),
        sample_pdf(),
    )


def _sign(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        _refuse_outside_trial(settings)
        cuil = _PEOPLE[0][0]
        told = load_people(settings)[cuil]
        async with open_front(settings, SystemClock(), "operator") as front:
            request = await _new_request(front)
            client = _Client(settings.web.base_url)
            challenge = client.post(
                "/auth/login", {"usuario": cuil, "password": told["clave"]}
            )
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
        args.out.write_bytes(client.fetch(answer["documentoFirmado"]))
        say(f"solicitud {request} firmada: {args.out}")
        return 0

    return run_async(work, args)


class _Client:
    """The public API as a client sees it."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self.bearer = ""

    def get(self, path: str) -> Any:
        return json.loads(self.fetch(self._base_url + path))

    def post(self, path: str, body: dict[str, object]) -> Any:
        return json.loads(self.fetch(self._base_url + path, json.dumps(body).encode()))

    def fetch(self, url: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self.bearer}"} if self.bearer else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, body, headers)  # noqa: S310 (our own address, from the settings)
        try:
            with urllib.request.urlopen(request, timeout=_CALL_S) as answer:  # noqa: S310 (same)
                content: bytes = answer.read()
        except urllib.error.HTTPError as exc:
            raise SystemExit(f"{exc.code} {exc.read().decode()}") from exc
        return content


def _people_file(settings: Settings) -> Path:
    return settings.data_dir / "demo.json"


def load_people(settings: Settings) -> dict[str, dict[str, str]]:
    """The demo people's passwords by CUIL; empty before `setup`."""
    try:
        people: dict[str, dict[str, str]] = json.loads(
            _people_file(settings).read_text(encoding="utf-8")
        )
    except FileNotFoundError:
        return {}
    return people


def _save_people(settings: Settings, people: dict[str, dict[str, str]]) -> None:
    path = _people_file(settings)
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(
        json.dumps(people, ensure_ascii=False, indent=2), encoding="utf-8"
    )
    Path(temporary).replace(path)


def _refuse_outside_trial(settings: Settings) -> None:
    if not settings.trial:
        raise ApplianceError(ErrorCode.NOT_A_TRIAL)
