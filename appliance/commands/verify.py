"""`rubrica verify`: the signatures of a file, by the roots that are trusted here."""

import argparse
from pathlib import Path

from appliance.bootstrap import open_core, open_trust
from appliance.commands.terminal import read_file, run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.document import SignatureReport, VerificationReport
from appliance.domain.trust import AnchorPurpose
from appliance.settings import Settings, SettingsError


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `verify`.

    Args:
        commands: of the `rubrica` parser.
    """
    verify = commands.add_parser(
        "verify", help="check the signatures of a PDF by the roots trusted here"
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
            )
        _tell(args.file, report)
        return 0 if report.valid else 1

    return run_async(work, args)


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
        "the chain ends at a trusted root": signature.trusted,
        "it covers its whole revision": signature.covers_revision,
        "nothing but DSS and document timestamps follows": signature.only_ltv_follows,
    }
    say(f"  {signature.field}: {signature.signer} ({signature.signer_serial})")
    say(f"    signed at {signature.signed_at or 'an unknown time'}")
    if signature.timestamp is not None:
        say(f"    existed at {signature.timestamp}, by {signature.tsa}")
    if signature.level:
        say(f"    level {signature.level}")
    for words, holds in verdicts.items():
        say(f"    {'yes' if holds else 'NO '}  {words}")
    if signature.reason:
        say(f"    reason: {signature.reason}")
