"""`rubrica hsm anchors`: roots of outside CAs that this signing host believes.

    rubrica hsm anchors
    rubrica hsm anchors --pin 5A:3F:…
    rubrica hsm anchors --pin 5A:3F:… --file root.pem
    rubrica hsm anchors --unpin 5A:3F:…
    rubrica hsm anchors --check

The trust store says whose chains are imported, and whoever writes to the database
writes it. This host's file says with which of them a key signs; `docs/pki.md` tells the
rest.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509

from appliance.bootstrap import open_core, open_trust
from appliance.cli.terminal import read_file, run_async, say, table
from appliance.domain.clock import SystemClock
from appliance.domain.errors import (
    ApplianceError,
    ChainRefusedError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.pki.validation.certificate_rules import der_of, name_of, names
from appliance.pki.validation.path_validation import check_root
from appliance.pki.validation.pinned_anchors import PinnedAnchors, to_pem
from appliance.runtime.logging import configure_logging
from appliance.settings import Settings, SettingsError
from hsm_config.pkcs11.pin import replace_file
from worker.hsm.cli import quiet

_BETWEEN: Final = re.compile(r"[\s:.-]+")
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FILE_MODE: Final = 0o644


def anchors(args: argparse.Namespace) -> int:
    """Run the command; its exit status."""

    async def work(settings: Settings) -> int:
        configure_logging(quiet(settings), "operator")
        async with open_core(settings, SystemClock(), "operator") as core:
            views = await open_trust(core).anchors()
        signers = AnchorPurpose.SIGNERS
        recorded = {
            view.sha256: view.certificate
            for view in views
            # The installation's own root has no id, and counts always.
            if view.id and view.purpose is signers
        }
        return _run(args, settings, recorded)

    return run_async(work, args)


def _run(
    args: argparse.Namespace, settings: Settings, recorded: Mapping[str, bytes]
) -> int:
    """Do what was asked for; the exit status.

    Raises:
        ApplianceError: why it cannot be done.
        SettingsError: the file cannot be written.
    """
    path = settings.outside_anchors_file
    pinned = {_sha256(der): der for der in PinnedAnchors(path).certificates()}
    if args.pin is not None:
        wanted = _fingerprint(args.pin)
        der = _root(args.file, wanted, recorded, SystemClock().now())
        _write(path, {**pinned, wanted: der})
        say(f"pinned: {_subject(der)}")
        say(f"  sha256 {wanted}")
        return 0
    if args.unpin is not None:
        wanted = _fingerprint(args.unpin)
        if wanted not in pinned:
            raise ApplianceError(ErrorCode.ANCHOR_NOT_FOUND)
        _write(path, {sha: der for sha, der in pinned.items() if sha != wanted})
        say("pinned no more; workers of this host see it at once")
        return 0
    missing = [sha for sha in recorded if sha not in pinned]
    if args.check:
        for sha in missing:
            told = f"{_subject(recorded[sha])} is trusted, and not pinned here"
            sys.stderr.write(f"{told}: sha256 {sha}\n")
        return 1 if missing else 0
    rows = [
        (
            "yes" if sha in pinned else "no",
            "yes" if sha in recorded else "no",
            x509.load_der_x509_certificate(der).not_valid_after_utc.date().isoformat(),
            sha,
            _subject(der),
        )
        for sha, der in sorted({**recorded, **pinned}.items())
    ]
    say(table(("pinned", "trusted", "until", "sha256", "name"), rows))
    if missing:
        say("")
        say("Compare a fingerprint with the one that its CA publishes, then pin it:")
        say("  rubrica hsm anchors --pin SHA256")
    return 0


def _root(
    file: Path | None, wanted: str, recorded: Mapping[str, bytes], now: datetime
) -> bytes:
    """The root with a fingerprint, DER.

    Args:
        file: that has it; None: it is in the trust store.
        wanted: its SHA-256.
        recorded: the trust store's, by SHA-256.
        now: aware.

    Raises:
        ChainRefusedError: the file has none, or another one.
        ApplianceError: `ANCHOR_NOT_FOUND`: the trust store has none.
    """
    if file is None:
        if wanted not in recorded:
            raise ApplianceError(ErrorCode.ANCHOR_NOT_FOUND)
        return recorded[wanted]
    root = check_root(read_file(file), now)
    der = der_of(root)
    if _sha256(der) != wanted:
        raise ChainRefusedError(
            ErrorCode.ANCHOR_FINGERPRINT, 0, **names(root), sha256=_sha256(der)
        )
    return der


def _fingerprint(typed: str) -> str:
    """Read a SHA-256 fingerprint as CAs print it.

    Raises:
        FieldInvalidError: it is none.
    """
    bare = _BETWEEN.sub("", typed).lower()
    if not _SHA256.fullmatch(bare):
        raise FieldInvalidError("fingerprint", "SHA-256, hex")
    return bare


def _write(path: Path, pinned: Mapping[str, bytes]) -> None:
    """Write the file, wholly or not at all.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        replace_file(path, to_pem([*pinned.values()]), _FILE_MODE)
    except OSError as exc:
        msg = f"{path}: cannot be written ({exc.strerror}); mend its owner and mode"
        raise SettingsError(msg) from exc


def _sha256(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()


def _subject(der: bytes) -> str:
    return name_of(x509.load_der_x509_certificate(der).subject)
