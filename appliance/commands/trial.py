"""Commands of a trial, and verification of a file.

`rubrica demo otp` stands in for a person's telephone; it exists in trials only.
"""

import argparse
import asyncio
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pyotp

from appliance.bootstrap import Front, open_core, open_front
from appliance.commands.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.document import SignatureReport, VerificationReport
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.person import Person, parse_cuil
from appliance.services.login import email_index
from appliance.settings import Settings, SettingsError

_STEP_S: Final = 30
_AHEAD: Final = 1
"""Steps ahead of the clock that sign-in still takes."""


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `demo` and `verify`.

    Args:
        commands: of the `rubrica` parser.
    """
    from appliance.commands import demo as demo_commands  # noqa: PLC0415 (a cycle)

    demo = commands.add_parser("demo", help="for trials: stand in for a person")
    parts = demo.add_subparsers(dest="part", required=True)
    otp = parts.add_parser("otp", help="the next code of a demo person, not yet used")
    otp.add_argument("user", help="CUIL or e-mail address")
    otp.set_defaults(run=_otp)
    demo_commands.register(parts)
    for point in sorted(entry_points(group="rubrica.demo")):
        point.load()(parts)
    verify = commands.add_parser(
        "verify", help="check the signatures of a PDF against this installation's CA"
    )
    verify.add_argument("file", type=Path)
    verify.set_defaults(run=_verify)


def _otp(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        if not settings.trial:
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        async with open_front(settings, SystemClock(), "operator") as front:
            say(await next_code(front, args.user))
        return 0

    return run_async(work, args)


async def next_code(front: Front, user: str) -> str:
    """The code of the earliest step that sign-in would still take.

    Args:
        front: opens the person's seed.
        user: CUIL or e-mail address.
    """
    async with front.core.store.read() as records:
        person = await _find(front, user)
        secret = await records.logins.secret(person.id)
    if secret is None:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    seed = front.sealer.open(
        secret.totp_sealed, table="login_secret", row=person.id, column="totp_sealed"
    )
    while True:
        now = int(front.clock.now().timestamp()) // _STEP_S
        step = max(secret.last_step + 1, now)
        if step <= now + _AHEAD:
            return pyotp.TOTP(seed.decode()).generate_otp(step)
        await asyncio.sleep(1)


async def _find(front: Front, user: str) -> Person:
    """A person by CUIL or e-mail address.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`.
    """
    async with front.core.store.read() as records:
        try:
            person = await records.people.by_cuil(parse_cuil(user))
        except FieldInvalidError:
            index = email_index(front.lookup, user)
            person = await records.people.by_email_index(index)
    if person is None:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    return person


def _verify(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        try:
            pdf = args.file.read_bytes()
        except OSError as exc:
            msg = f"{args.file}: cannot be read ({exc.strerror})"
            raise SettingsError(msg) from exc
        roots = _roots(settings)
        async with open_core(settings, SystemClock(), "operator") as core:
            report = await core.inspector.verify(pdf, roots)
        _tell(args.file, report)
        return 0 if report.valid else 1

    return run_async(work, args)


def _roots(settings: Settings) -> list[bytes]:
    """The installation's CA, in DER.

    Raises:
        SettingsError: it was not made yet.
    """
    from cryptography import x509  # noqa: PLC0415 (heavy)
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 (heavy)
        Encoding,
    )

    path = settings.data_dir / "pki" / "ca.pem"
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as exc:
        msg = f"{path}: holds no certificate; run `rubrica hsm init`"
        raise SettingsError(msg) from exc
    return [certificate.public_bytes(Encoding.DER) for certificate in certificates]


def _tell(path: Path, report: VerificationReport) -> None:
    say(f"{path}: {'VALID' if report.valid else 'NOT VALID'}")
    if not report.signatures:
        say("  it carries no signature")
    for signature in report.signatures:
        _tell_signature(signature)
    if not report.ends_at_eof:
        say("  something is appended after the last revision")


def _tell_signature(signature: SignatureReport) -> None:
    verdicts = {
        "the signed bytes are intact": signature.intact,
        "the chain ends at this installation's CA": signature.trusted,
        "it covers its whole revision": signature.covers_revision,
        "nothing but DSS and document timestamps follows": signature.only_ltv_follows,
    }
    say(f"  {signature.field}: {signature.signer} ({signature.signer_serial})")
    say(f"    signed at {signature.signed_at or 'an unknown time'}")
    for words, holds in verdicts.items():
        say(f"    {'yes' if holds else 'NO '}  {words}")
    if signature.reason:
        say(f"    reason: {signature.reason}")
