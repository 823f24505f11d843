"""`rubrica demo`: the people of a trial, and a signature as a client makes it.

`setup` makes what a trial needs once and keeps the people's passwords in a file
of the data folder; `sign` uses nothing but the public API, as any client would.
"""

import argparse
import json
import os
import shlex
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.demo import network, otp
from appliance.cli.demo.client import ApiClient, own_address
from appliance.cli.demo.host_files import CONFIG_FILE
from appliance.cli.demo.people import sign_through_api
from appliance.cli.demo.sample import sample_pdf
from appliance.cli.demo.setup import (
    INTEGRATOR,
    PEOPLE,
    load_console,
    load_people,
    refuse_outside_trial,
    set_up,
    site_origin,
)
from appliance.cli.fronts import operators_front
from appliance.cli.terminal import run_async, say, table, write_file
from appliance.domain.people.identity import format_cuil
from appliance.settings import Settings, load_settings

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry


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
    network.register(parts)
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
    return run_async(set_up, args)


def _command(settings: Path | None) -> str:
    """This program, as it is typed from the present folder."""
    # Started by its path, as `./quickstart` does, it is on nobody's PATH.
    program = sys.argv[0] if os.sep in sys.argv[0] else "rubrica"
    words = [_near(Path(program))]
    if settings is not None:
        words += ["--settings", _near(settings)]
    return shlex.join(words)


def _near(path: Path) -> str:
    """A path, shortened where it lies below the present folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _show(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    refuse_outside_trial(settings)
    site = json.loads((settings.data_dir / CONFIG_FILE).read_text(encoding="utf-8"))
    console = load_console(settings)
    origin = site_origin(settings, site["listen"])
    if settings.web.listen("api").startswith("127.0.0.1:"):
        # In a container nobody reaches the site.
        _show_first(settings, origin)
    say(f"API, sessions:  {settings.web.base_url}")
    say(f"iframe:         {settings.web.iframe_url}/embed/")
    say(f"demo site:      {origin}/  (embeds the iframe)")
    if site.get("mail_listen"):
        say(f"its mails:      {origin}/correos  (none is sent)")
    say(f"for developers: {settings.web.web_url}/docs  (guide, reference, samples)")
    known = _near(settings.data_dir / "demo.env")
    say(f"                API key and addresses in {known}")
    say(f"console:        {settings.web.admin_url}/admin/")
    say(f"                user {console['usuario']}, password {console['clave']}")
    rows = [
        (format_cuil(cuil), told["nombre"], told["clave"], told["claveDeFirma"])
        for cuil, told in load_people(settings).items()
    ]
    say(table(("user", "name", "password", "signing password"), rows))
    say(f"in memory:      {settings.activation_dir}  (goes with the installation)")
    say("codes of the second factor, of a person or of admin:")
    say(f"                {_command(args.settings)} demo otp USER")
    return 0


def _show_first(settings: Settings, origin: str) -> None:
    """Say which address a visitor opens first, and draw it for a telephone."""
    first = network.visit_address(settings, origin)
    say("Open this first, and sign a document in the browser (the page has all codes):")
    say("")
    say(f"    {first}")
    say("")
    address = network.shared_address(settings)
    if not address:
        return
    if sys.stdout.isatty() and (sys.stdout.encoding or "").lower() == "utf-8":
        # Not by `say`, which takes out the colours: no text of others is drawn.
        sys.stdout.write("\n".join([*network.qr_lines(first), "", ""]))
    say(f"Every device that reaches {address} reaches this trial. Codes, passwords and")
    say("mails are shown to whoever opens that whole address: hand it to nobody else.")
    say("The browser warns of the certificate once, since no authority has issued it.")
    say("")


def _request(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        refuse_outside_trial(settings)
        async with operators_front(settings) as front:
            say(f"request {await _new_request(front)}")
        return 0

    return run_async(work, args)


async def _new_request(front: "ServiceRegistry") -> int:
    from appliance.requests.intake import IntakeOrder  # noqa: PLC0415 (heavy)

    return await front.intake.create_request(
        IntakeOrder(
            integrator_code=INTEGRATOR,
            cuil=PEOPLE[0][0],
            file_name="contrato.pdf",
            expires=None,
            origin="operador",
            actor="operator",
        ),
        sample_pdf(),
    )


def _sign(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        refuse_outside_trial(settings)
        cuil = PEOPLE[0][0]
        told = load_people(settings)[cuil]
        async with operators_front(settings) as front:
            request = await _new_request(front)
            client = ApiClient(own_address(settings), settings.web.base_url)
            signed = await sign_through_api(front, client, cuil, told, request)
        write_file(args.out, signed)
        say(f"request {request} signed: {args.out}")
        return 0

    return run_async(work, args)
