"""`rubrica verify`: the signatures of a file, by the roots that are trusted here."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from appliance.bootstrap import open_core, open_trust
from appliance.commands.terminal import read_file, run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.document import SignatureReport, VerificationReport
from appliance.domain.trust import AnchorPurpose
from appliance.services.tsa_certificates import TsaCertificates
from appliance.settings import Settings, SettingsError


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `verify`.

    Args:
        commands: of the `rubrica` parser.
    """
    verify = commands.add_parser(
        "verify",
        help="check the signatures of a PDF by the roots trusted here",
        epilog="Exit status: 0, it is signed and every signature is valid; 1, it is "
        "not, or it could not be checked; 2, the command is wrong; 78, the settings "
        "are, or the file cannot be read.",
    )
    verify.add_argument("file", type=Path)
    verify.set_defaults(run=_verify)


def _verify(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        pdf = read_file(args.file)
        if not settings.root_file.exists():
            msg = f"{settings.root_file}: is not there; run `rubrica hsm init`"
            raise SettingsError(msg)
        async with open_core(settings, SystemClock(), "operator") as core:
            trust = open_trust(core)
            report = await core.inspector.verify(
                pdf,
                await trust.roots(AnchorPurpose.SIGNERS),
                await trust.roots(AnchorPurpose.TIMESTAMPS),
                await TsaCertificates(core.store, core.clock).revoked(),
            )
        for line in told(args.file, report):
            say(line)
        return 0 if report.valid else 1

    return run_async(work, args)


def told(path: Path, report: VerificationReport) -> Iterator[str]:
    """What is said of a file, line by line.

    Args:
        path: of the file.
        report: on it.
    """
    yield f"{path}: {'VALID' if report.valid else 'NOT VALID'}"
    if not report.signatures:
        yield "  it carries no signature"
    for signature in report.signatures:
        yield from _told_of(signature)
    if not report.ends_at_eof:
        yield "  something is appended after the last revision"


def _told_of(signature: SignatureReport) -> Iterator[str]:
    who = _shown(signature.signer) or "nobody that could be read"
    if signature.signer_serial:
        who += f" ({_shown(signature.signer_serial)})"
    yield f"  {_shown(signature.field)}: {who}"
    if signature.signed_at is not None:
        yield f"    says it was signed at {_time(signature.signed_at)}"
    if signature.timestamp is not None:
        at, tsa = _time(signature.timestamp), _shown(signature.tsa)
        yield f"    proven to exist at {at}, by {tsa}"
    if signature.void:
        yield f"    a timestamp that does not count: {_shown(signature.void)}"
    if signature.level:
        yield f"    level PAdES {signature.level}"
    for words, holds in (
        ("the signed bytes are intact", signature.intact),
        ("the chain ends at a trusted root", signature.trusted),
        ("it covers its whole revision", signature.covers_revision),
        (
            "nothing but validation data, timestamps and signatures follows",
            signature.only_ltv_follows,
        ),
    ):
        yield f"    {'yes' if holds else 'NO '}  {words}"
    if signature.reason:
        yield f"    reason: {signature.reason}"


def _time(told: str) -> str:
    """A time as people read it: whole seconds, and the zone it was told in."""
    whole = datetime.fromisoformat(told).isoformat(" ", "seconds")
    return f"{whole[:19]} {whole[19:]}".rstrip()


def _shown(text: str) -> str:
    """What a file says, without what a terminal would take for an order."""
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text
    )
