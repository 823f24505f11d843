"""`rubrica verify`: the signatures of a file, by the roots that are trusted here."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli.terminal import read_file, run_with, say
from appliance.domain.clock import SystemClock
from appliance.domain.documents.verification import (
    Answer,
    CheckCode,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.sandbox import says_nothing
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
        description="Answer seven questions for each signature of a PDF: yes, NO, or ? "
        "where something could not be checked, with the reason below.",
        epilog="Exit status: 0, it is signed and every signature is valid; 1, it is "
        "not signed, a signature is not valid, or the file cannot be read; 3, nothing "
        "is wrong, and something could not be checked; 2, the command is wrong; 75, "
        "the database is away or nothing can be examined now; 78, the settings are "
        "wrong.",
    )
    verify.add_argument("file", type=Path, help="the PDF")
    verify.set_defaults(run=_verify)


_EXIT: Final = {Answer.YES: 0, Answer.NO: 1, Answer.UNCHECKED: 3}
VERDICTS: Final = {
    Answer.YES: "VALID",
    Answer.NO: "NOT VALID",
    Answer.UNCHECKED: "INDETERMINATE",
}
"""The first word on a file, in the sense of ETSI EN 319 102-1, 5.1.3."""
_TOO_MUCH: Final = "it takes more memory or time than a job has"
_DIED: Final = "the program that reads it broke down"
QUESTIONS: Final = {
    "integrity": "the signed bytes are intact",
    "identity": "the certificate is the signer's, for signing documents",
    "trust": "the chain ends at a trusted root",
    "revocation": "the certificate was in force when it was used",
    "time": "a trusted timestamp proves when",
    "coverage": "it covers its whole revision",
    "changes": "the signature allows what was added later",
}
_ANSWERS: Final = {Answer.YES: "yes", Answer.NO: "NO ", Answer.UNCHECKED: "?  "}


def _verify(args: argparse.Namespace) -> int:
    from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)
    from appliance.cli.own_sandbox import (  # noqa: PLC0415 (heavy)
        sandbox_at_hand,
    )
    from appliance.pki.signer_revocations import (  # noqa: PLC0415 (heavy)
        SignerRevocations,
    )

    given = load_settings(args.settings)
    pdf = read_file(args.file)
    if not given.root_file.exists():
        msg = f"{given.root_file}: is not there; run `rubrica hsm init`"
        raise SettingsError(msg)

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), "operator") as core:
            try:
                found = await report_on(core, pdf)
            except DocumentRefusedError as refusal:
                if not says_nothing(refusal):
                    raise
                say(f"{shown(str(args.file))}: {VERDICTS[Answer.UNCHECKED]}")
                is_too_much = refusal.code is ErrorCode.PDF_TOO_COMPLEX
                say(f"  nothing was checked: {_TOO_MUCH if is_too_much else _DIED}")
                return _EXIT[Answer.UNCHECKED]
            report = await SignerRevocations(core.store).apply(found)
        for line in report_lines(args.file, report):
            say(line)
        return _EXIT[report.verdict]

    with sandbox_at_hand(given) as settings:
        return run_with(work, settings)


async def report_on(core: "Core", pdf: bytes) -> VerificationReport:
    """Verify a file by the roots trusted here and the revocations of TSAs.

    Those of signers are left out: a document stays whole when its signer's
    certificate is revoked.

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


def report_lines(path: Path, report: VerificationReport) -> Iterator[str]:
    """A report in words, line by line.

    Args:
        path: of the file.
        report: on it.
    """
    yield f"{shown(str(path))}: {VERDICTS[report.verdict]}"
    if not report.signatures:
        yield "  it carries no signature"
    for signature in report.signatures:
        yield from _signature_lines(signature)
    if report.ending.answer is not Answer.YES:
        yield f"  {report.ending.reason}"
    if report.text_covered is Answer.YES:
        yield (
            f"  page {report.covered_pages[0]}: a later mark or filled field changes "
            "or hides text that was signed before it"
        )
    elif report.text_covered is Answer.UNCHECKED:
        yield "  text below later marks and fields could not be examined"
    for each in report.unproven:
        says = f", which says that it is by «{shown(each)}»," if each else ""
        yield f"  a document timestamp{says} proves nothing: it is not trusted here"
    if report.pages_changed:
        yield (
            f"  pages whose objects later revisions changed: {report.pages_changed}, "
            f"compared as pictures: {report.pages_compared}"
        )


def _signature_lines(signature: SignatureReport) -> Iterator[str]:
    field = shown(signature.field) or "in an unknown field"
    yield f"  {field}: {_who(signature)}"
    if signature.signed_at is not None:
        yield f"    says it was signed at {_time(signature.signed_at)}"
    if signature.timestamp is not None:
        at, tsa = _time(signature.timestamp), shown(signature.tsa)
        yield f"    proven to exist at {at}, by {tsa}"
    if signature.void:
        yield f"    a timestamp that does not count: {shown(signature.void)}"
    if signature.level:
        yield f"    level PAdES {signature.level}"
    for question, check in signature.checks():
        is_asked = check.code is not CheckCode.NOT_EXAMINED or question == "changes"
        if is_asked:
            yield f"    {_ANSWERS[check.answer]}  {QUESTIONS[question]}"
        if is_asked and check.reason:
            yield f"         {shown(check.reason)}"
    permitted = ", as permitted" if signature.changes.answer is Answer.YES else ""
    for each in signature.filled:
        name, before, after = map(shown, (each.name, each.before, each.after))
        done = "changed" if before else "filled in"
        yield f"    {done} since{permitted}: {name}: «{before}» → «{after}»"
        if each.shown:
            yield f"         the page shows another text there: «{shown(each.shown)}»"


def _who(signature: SignatureReport) -> str:
    if signature.is_timestamp:
        return "a document timestamp"
    is_known = signature.integrity.answer is Answer.YES
    unknown = "the signer's name is not known" if is_known else "no signer is proven"
    who = shown(signature.signer) or unknown
    serial = shown(signature.signer_serial)
    return f"{who} ({serial})" if serial else who


def _time(stated: str) -> str:
    """A time as people read it: whole seconds, and the zone it was stated in."""
    whole = datetime.fromisoformat(stated).isoformat(" ", "seconds")
    return f"{whole[:19]} {whole[19:]}".rstrip()


def shown(text: str) -> str:
    """Text of a file without the characters that a terminal takes for commands."""
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text
    )
