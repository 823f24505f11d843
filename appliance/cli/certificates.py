"""`rubrica certificate`: signers' certificates, and revoking them.

Asking is done here, on the record; CRL and OCSP answers are signed by a signing
worker that runs.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli import arguments
from appliance.cli.fronts import handle
from appliance.cli.terminal import read_file, say, table
from appliance.domain.ids import CredentialId
from appliance.domain.people.identity import format_cuil
from appliance.domain.pki.certificates import CertificateView
from appliance.domain.vocab import CertificateState, RevocationReason

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_WAIT_S: Final = 60.0


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `certificate`.

    Args:
        commands: of the `rubrica` parser.
    """
    certificate = commands.add_parser("certificate", help="signers' certificates")
    parts = certificate.add_subparsers(dest="part", required=True)
    listing = parts.add_parser("list", help="newest first")
    arguments.add_limit(listing)
    listing.add_argument("--before", help="serial number: those issued earlier")
    handle(listing, _list)
    show = parts.add_parser("show", help="one certificate, and how it stands")
    show.add_argument("serial", help="serial number, hexadecimal")
    handle(show, _show)
    revoke = parts.add_parser(
        "revoke", help="revoke a certificate and every other one of its key, for good"
    )
    revoke.add_argument("serial", help="serial number, hexadecimal")
    revoke.add_argument(
        "--reason",
        required=True,
        choices=[reason.value for reason in RevocationReason],
        help="told to whoever checks (RFC 5280, 5.3.1)",
    )
    handle(revoke, _revoke)
    take = parts.add_parser(
        "import", help="have a credential sign with what an outside CA issued"
    )
    take.add_argument("credential", help="its id (the console and the API show it)")
    take.add_argument(
        "file", type=Path, help="PEM: the certificate first, then each one's issuer"
    )
    handle(take, _import)
    check = parts.add_parser(
        "check",
        help="list the keys in use that signing workers refuse, and why",
        epilog="Exit status: 0, there is none; 1, some are. Keys on the token and "
        "the roots that a signing host pins are not looked at.",
    )
    handle(check, _check)


async def _list(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    views = await front.certificates.list(args.limit, args.before)
    rows = [
        (
            view.certificate.serial,
            _state(view),
            format_cuil(view.cuil),
            view.name,
            view.certificate.not_after.date().isoformat(),
        )
        for view in views
    ]
    say(table(("serial", "state", "cuil", "name", "until"), rows))
    return 0


async def _check(front: "ServiceRegistry", _args: argparse.Namespace) -> int:
    from appliance.bootstrap import open_credential_faults  # noqa: PLC0415 (heavy)

    rows = [
        (one.credential, format_cuil(one.cuil), one.fault.value)
        async for one in open_credential_faults(front.core).all()
    ]
    if not rows:
        say("every key in use is its person's, by its certificate")
        return 0
    say(table(("credential", "cuil", "fault"), rows))
    return 1


async def _show(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from cryptography import x509  # noqa: PLC0415 (heavy)
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 (heavy)
        Encoding,
    )

    view = await front.certificates.get(args.serial)
    held = view.certificate
    facts = {
        "serial": held.serial,
        "person": f"{view.name} ({format_cuil(view.cuil)})",
        "state": _state(view),
        "from": held.not_before.isoformat(),
        "until": held.not_after.isoformat(),
        "credential": f"{held.credential} ({view.credential_state})",
    }
    if held.revoked_at is not None and held.reason is not None:
        facts["revoked"] = f"{held.revoked_at.isoformat()}, {held.reason}"
    for name, value in facts.items():
        say(f"{name:<10}  {value}")
    pem = x509.load_der_x509_certificate(held.der).public_bytes(Encoding.PEM)
    say(pem.decode().rstrip())
    return 0


async def _revoke(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    reason = RevocationReason(args.reason)
    task = await front.revocations.ask(args.serial, reason, "operator")
    say("it signs no more; waiting for CRL and OCSP…")
    output = await front.tasks.wait(task, _WAIT_S)
    say(f"revoked: credential {output['credential']}, CRL number {output['crlNumber']}")
    return 0


def _state(view: CertificateView) -> str:
    """`valid`, `renewed`, `revoking` or `revoked`; dates say the rest."""
    state = view.certificate.state
    if state is CertificateState.VALID and not view.is_current:
        return "renewed"
    return state.value


async def _import(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    view = await front.credentials.import_chain(
        CredentialId(args.credential), read_file(args.file), "operator"
    )
    say(f"{view.holder} ({format_cuil(view.cuil)}) now signs with")
    say(f"  serial {view.serial} of {view.issuer}")
    say(f"  until  {view.not_after.isoformat(timespec='minutes')}")
    return 0
