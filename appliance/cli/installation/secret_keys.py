"""`rubrica secrets`: replace the keys that are kept in secret files.

    rubrica secrets status
    rubrica secrets rotate data
    rubrica secrets retire data 1

`docs/rotation.md` tells in which order, and what with several hosts.
"""

import argparse
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli import arguments
from appliance.cli.progress_bar import ProgressBar
from appliance.cli.terminal import run_async, say, table
from appliance.domain.clock import SystemClock
from appliance.domain.keys.versioned_secrets import LAST, KeyRing
from appliance.domain.vocab import EventKind, SecretName
from appliance.secrets.key_files import KEY_BYTES, read_key_ring, write_key_ring
from appliance.settings import Settings, SettingsError

if TYPE_CHECKING:
    from appliance.operations.secret_rotation import SecretRotation, SessionSteps

_Work = Callable[["SecretRotation", Settings, argparse.Namespace], Awaitable[int]]
_BECOMES: Final = "Processes on other hosts, and units that were given copies, need "
_PREPARED: Final = (
    _BECOMES + "the file now; then run\n`rubrica secrets rotate` to take it into use."
)


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `secrets`.

    Args:
        commands: of the `rubrica` parser.
    """
    group = commands.add_parser("secrets", help="replace the keys in secret files")
    parts = group.add_subparsers(dest="part", required=True)
    status = parts.add_parser("status", help="which versions there are and are needed")
    _handle(status, _status)
    prepare = parts.add_parser(
        "prepare", help="make the next version known, before it is used"
    )
    rotate = parts.add_parser(
        "rotate", help="take a new version into use and bring the record to it"
    )
    retire = parts.add_parser("retire", help="forget a version that nothing needs")
    for part, work in ((prepare, _prepare), (rotate, _rotate), (retire, _retire)):
        part.add_argument("name", type=SecretName, choices=list(SecretName))
        _handle(part, work)
    retire.add_argument("version", type=arguments.number)


def _handle(parser: argparse.ArgumentParser, work: _Work) -> None:
    def run(args: argparse.Namespace) -> int:
        from appliance.bootstrap import open_secret_rotation  # noqa: PLC0415 (heavy)

        async def within(settings: Settings) -> int:
            async with open_secret_rotation(settings, SystemClock()) as rotation:
                return await work(rotation, settings, args)

        return run_async(within, args)

    parser.set_defaults(run=run)


def key_path(settings: Settings, name: SecretName) -> Path:
    """The file of a secret key."""
    return {
        SecretName.DATA: settings.secrets.data_key_file,
        SecretName.DOCUMENT: settings.document_key_file,
        SecretName.LOOKUP: settings.secrets.lookup_key_file,
        SecretName.PEPPER: settings.secrets.pepper_file,
    }[name]


async def _status(
    rotation: "SecretRotation", settings: Settings, _args: argparse.Namespace
) -> int:
    rows = []
    for name in SecretName:
        ring = read_key_ring(key_path(settings, name))
        used = await rotation.used(name, ring)
        for version in sorted({*used, *ring.keys}):
            counted = {what: n for what, n in used.get(version, {}).items() if n}
            needed = ", ".join(f"{n} {what}" for what, n in sorted(counted.items()))
            rows.append(
                [name.value, str(version), _state(ring, version), needed or "-"]
            )
    say(table(["key", "version", "state", "needed by"], rows))
    return 0


def _state(ring: KeyRing, version: int) -> str:
    if version == ring.present:
        return "in use"
    if version == ring.next:
        return "next"
    return "known" if version in ring.keys else "MISSING"


async def _prepare(
    _rotation: "SecretRotation", settings: Settings, args: argparse.Namespace
) -> int:
    path = key_path(settings, args.name)
    ring = read_key_ring(path)
    if ring.next is not None:
        say(f"{args.name}: version {ring.next} is prepared already")
    else:
        ring = _with_next(path, ring)
        say(f"{args.name}: version {ring.next} is prepared")
    say(_PREPARED)
    return 0


def _with_next(path: Path, ring: KeyRing) -> KeyRing:
    """Add a version to a key file, not in use yet.

    Raises:
        SettingsError: there is no number left, or the file cannot be written.
    """
    version = max(ring.keys) + 1
    if version > LAST:
        msg = f"{path}: {LAST} is the last version that there can be"
        raise SettingsError(msg)
    new = KeyRing(ring.present, {**ring.keys, version: secrets.token_bytes(KEY_BYTES)})
    write_key_ring(path, new)
    return new


async def _rotate(
    rotation: "SecretRotation", settings: Settings, args: argparse.Namespace
) -> int:
    name: SecretName = args.name
    path = key_path(settings, name)
    ring = read_key_ring(path)
    left = await _left(rotation, name, ring)
    if left and ring.next is None:
        say(f"{name}: going on with version {ring.present}")
    else:
        if ring.next is None:
            ring = _with_next(path, ring)
        ring = KeyRing(max(ring.keys), ring.keys)
        write_key_ring(path, ring)
        await rotation.recorded(EventKind.SECRET_ROTATED, name, ring.present)
        say(f"{name}: version {ring.present} is in use")
        left = await _left(rotation, name, ring)
    await _apply(rotation, name, ring.present, left)
    return 0


async def _left(rotation: "SecretRotation", name: SecretName, ring: KeyRing) -> int:
    """How many values the command itself can bring to the present version."""
    if name is SecretName.PEPPER:
        return 0
    used = await rotation.used(name, ring)
    return sum(
        count
        for version, counted in used.items()
        if version != ring.present
        for what, count in counted.items()
        if name is not SecretName.LOOKUP or what == "person.email_index"
    )


async def _apply(
    rotation: "SecretRotation", name: SecretName, version: int, total: int
) -> None:
    """Bring what can be brought to a version."""
    apply: Callable[[int, SessionSteps], Awaitable[int]]
    if name is SecretName.PEPPER:
        say("Each signing password takes it on when it is next used.")
        return
    if name is SecretName.LOOKUP:
        apply, what = rotation.reindex, "indexing anew"
    else:
        apply, what = partial(rotation.reseal, name), "sealing anew"
    bar = ProgressBar(what, total)
    done = await apply(version, bar.advance)
    bar.finish()
    say(f"{name}: {done} values were brought to version {version}")


async def _retire(
    rotation: "SecretRotation", settings: Settings, args: argparse.Namespace
) -> int:
    name: SecretName = args.name
    version: int = args.version
    path = key_path(settings, name)
    ring = read_key_ring(path)
    if version not in ring.keys or version == ring.present:
        say(f"{name}: version {version} is not one to retire; see `secrets status`")
        return 1
    used = (await rotation.used(name, ring)).get(version, {})
    needed = [f"{count} {what}" for what, count in sorted(used.items()) if count]
    if needed:
        say(f"{name}: version {version} is still needed by {', '.join(needed)}")
        return 1
    keys = {number: key for number, key in ring.keys.items() if number != version}
    write_key_ring(path, KeyRing(ring.present, keys))
    await rotation.recorded(EventKind.SECRET_RETIRED, name, version)
    say(f"{name}: version {version} is retired")
    return 0
