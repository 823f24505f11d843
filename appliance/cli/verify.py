"""`rubrica verify`: the signatures of a file, by the roots that are trusted here."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.terminal import read_file, say
from appliance.domain.clock import SystemClock
from appliance.domain.documents import SignatureReport, VerificationReport
from appliance.domain.trust_store import AnchorPurpose
from appliance.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from appliance.bootstrap import Core


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
        "not, or it could not be read or checked; 2, the command is wrong; 75, the "
        "database is away; 78, the settings are wrong.",
    )
    verify.add_argument("file", type=Path)
    verify.set_defaults(run=_verify)


def _verify(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)
    from appliance.cli.own_sandbox import (  # noqa: PLC0415 (heavy)
        sandbox_at_hand,
    )

    given = load_settings(args.settings)
    pdf = read_file(args.file)
    if not given.root_file.exists():
        msg = f"{given.root_file}: is not there; run `rubrica hsm init`"
        raise SettingsError(msg)

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), "operator") as core:
            report = await report_on(core, pdf)
        for line in told(args.file, report):
            say(line)
        return 0 if report.valid else 1

    with sandbox_at_hand(given) as settings:
        return asyncio.run(work(settings))


async def report_on(core: "Core", pdf: bytes) -> VerificationReport:
    """What the signatures of a file are worth, by the roots trusted here.

    Args:
        core: an open one.
        pdf: the file.
    """
    from appliance.bootstrap import open_trust  # noqa: PLC0415 (heavy)
    from appliance.pki.tsa.tsa_certificates import TsaCertificates  # noqa: PLC0415 (heavy)

    trust = open_trust(core)
    return await core.inspector.verify(
        pdf,
        await trust.roots(AnchorPurpose.SIGNERS),
        await trust.roots(AnchorPurpose.TIMESTAMPS),
        await TsaCertificates(core.store, core.clock).revoked(),
    )


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
    if report.text_covered:
        yield "  a later signature's mark hides text that was signed before it"


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
    if not signature.intact:
        # Whose they were and what follows them is not asked of other bytes.
        yield "    NO   the signed bytes are intact"
        yield f"    reason: {signature.reason}"
        return
    for words, holds in (
        ("the signed bytes are intact", signature.intact),
        ("the chain ends at a trusted root", signature.trusted),
        ("it covers its whole revision", signature.covers_revision),
        (
            "only validation data, metadata, timestamps and signatures follow",
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
