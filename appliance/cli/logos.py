"""Operators' command around the logo of stamps.

rubrica logo set escudo.png
rubrica logo set acme.png --integrator acme
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.fronts import handle
from appliance.cli.terminal import read_file, say

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_ACTOR = "operator"
_Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse names it no better)


def register(commands: "_Subparsers[argparse.ArgumentParser]") -> None:
    """Add `logo`.

    Args:
        commands: of the `rubrica` parser.
    """
    logo = commands.add_parser("logo", help="the picture that stamps show")
    actions = logo.add_subparsers(dest="action", required=True)
    show = actions.add_parser("set", help="show a picture from now on")
    show.add_argument("file", type=Path, help="PNG or JPEG, up to 1 MB")
    _of(show)
    handle(show, _set)
    drop = actions.add_parser("clear", help="show none any more")
    _of(drop)
    handle(drop, _clear)


def _of(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--integrator", help="its code: on its stamps alone; else on all others"
    )


async def _set(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    content = read_file(args.file)
    logo = await front.logos.show(content, _ACTOR, args.integrator)
    say(f"logo: {logo.width_px} x {logo.height_px} pixels, {logo.sha256}")
    return 0


async def _clear(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    dropped = await front.logos.drop(_ACTOR, args.integrator)
    say("logo: none" if dropped else "logo: there was none")
    return 0
