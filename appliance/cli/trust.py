"""`rubrica trust`: roots of outside CAs whose chains are imported."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.fronts import handle
from appliance.cli.terminal import read_file, say, table
from appliance.domain.pki.trust_store import AnchorPurpose

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_ACTOR = "operator"


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `trust`.

    Args:
        commands: of the `rubrica` parser.
    """
    trust = commands.add_parser("trust", help="roots of outside CAs")
    parts = trust.add_subparsers(dest="part", required=True)
    listing = parts.add_parser("list", help="what is trusted")
    handle(listing, _list)
    add = parts.add_parser("add", help="trust a root")
    add.add_argument("file", type=Path, help="its certificate, PEM or DER")
    add.add_argument(
        "--fingerprint",
        required=True,
        help="SHA-256 or SHA-1, from where the CA publishes it and not from the file",
    )
    add.add_argument(
        "--purpose",
        choices=[purpose.value for purpose in AnchorPurpose],
        default=AnchorPurpose.SIGNERS.value,
    )
    handle(add, _add)
    remove = parts.add_parser("remove", help="trust a root no longer")
    remove.add_argument("id", help="as `trust list` shows it")
    handle(remove, _remove)


async def _list(front: "ServiceRegistry", _args: argparse.Namespace) -> int:
    rows = [
        (
            anchor.id or "(own)",
            anchor.purpose.value,
            anchor.not_after.date().isoformat(),
            anchor.sha256,
            anchor.name,
        )
        for anchor in await front.trust.anchors()
    ]
    say(table(("id", "purpose", "until", "sha256", "name"), rows))
    return 0


async def _add(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    purpose = AnchorPurpose(args.purpose)
    content = read_file(args.file)
    added = await front.trust.add(_ACTOR, content, purpose, args.fingerprint)
    say(f"trusted for {purpose.value}: {added.subject}")
    say(f"  id     {added.id}")
    say(f"  sha256 {added.sha256}")
    return 0


async def _remove(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    await front.trust.remove(_ACTOR, args.id)
    say("removed")
    return 0
