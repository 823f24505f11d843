"""`rubrica verify`: the signatures of a file against this installation's CA."""

import argparse
from pathlib import Path

from appliance.bootstrap import open_core
from appliance.commands.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.document import SignatureReport, VerificationReport
from appliance.settings import Settings, SettingsError


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `verify`.

    Args:
        commands: of the `rubrica` parser.
    """
    verify = commands.add_parser(
        "verify", help="check the signatures of a PDF against this installation's CA"
    )
    verify.add_argument("file", type=Path)
    verify.set_defaults(run=_verify)


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
    """The root of the installation's CA, in DER.

    Raises:
        SettingsError: it was not made yet.
    """
    from cryptography import x509  # noqa: PLC0415 (heavy)
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 (heavy)
        Encoding,
    )

    path = settings.root_file
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
