"""`rubrica` as installed with the systemd units: each command as its role's user.

What root makes, no role can read, and no role may do what another one's work is. So
root's command runs as the user whose work it is, with that role's group, umask,
credentials and way out, in a unit of its own.

Source: systemd-run(1); systemd.exec(5), "Credentials"; systemd.resource-control(5),
"IPAddressAllow=".
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

MIGRATE: Final = "migrate"
"""Who alters tables, replaces keys, and does operators' work."""
ROLES: Final[dict[tuple[str, ...], str | None]] = {
    ("audit",): MIGRATE,
    ("backup",): None,
    ("certificate",): MIGRATE,
    ("check-config",): None,
    ("check-ports",): None,
    ("console-user",): MIGRATE,
    ("database",): MIGRATE,
    ("demo",): None,
    ("doctor",): None,
    ("documents",): MIGRATE,
    ("health",): MIGRATE,
    ("hsm",): "signing",
    ("hsm", "admit"): None,
    ("hsm", "kind"): None,
    ("hsm", "pins"): None,
    ("init",): None,
    ("integrator",): MIGRATE,
    ("levels",): MIGRATE,
    ("logo",): MIGRATE,
    ("mail",): "chores",
    ("migrate",): MIGRATE,
    ("person",): MIGRATE,
    ("ready",): MIGRATE,
    ("request",): MIGRATE,
    ("restore",): None,
    ("sample",): MIGRATE,
    ("sandbox",): "sandbox",
    ("secrets",): MIGRATE,
    ("serve", "admin"): "admin",
    ("serve", "api"): "api",
    ("serve", "embed"): "embed",
    ("serve", "metrics"): "metrics",
    ("setup",): None,
    ("status",): MIGRATE,
    ("timestamps",): MIGRATE,
    ("timestamps", "try"): "chores",
    ("trust",): MIGRATE,
    ("up",): None,
    ("upgrade",): MIGRATE,
    ("upgrade", "--close"): None,
    ("verify",): MIGRATE,
    ("webhooks",): None,
    ("worker", "chores"): "chores",
    ("worker", "signing"): "signing",
}
"""By the words that a command begins with, the longest that fit. None: it is root's
(what looks at everything), or of a trial."""
_INSTANCES: Final = {"signing": ("signing@1", "signing@")}
"""Units that are one of several, and what they are made from: where the first is
masked, another one runs."""
_ASKING: Final = frozenset({"health", "ready", "sample"})
"""Commands that ask a role where it listens, as others do: their unit's way out leads
there only where that is a loopback address."""
_ASK_DATABASE: Final = (MIGRATE, "api", "embed", "admin", "chores", "signing")
"""Roles with a user of the database, the one that may most first."""
_CREDENTIALS: Final = ("LoadCredential", "LoadCredentialEncrypted", "SetCredential")
NOT_THERE: Final = "is not there, and a unit hands it over (LoadCredential=)"
BRING_BACK: Final = (
    "bring it back from the backup of the secrets (docs/backup.md, "
    '"One file of the secrets")'
)
_GROUPS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("status",): ("rubrica-metrics",)
}
"""Groups that a command needs besides `rubrica`: `status` reads the figures, which
their roles' units let the console and `serve metrics` read."""
_WAYS: Final = ("IPAddressDeny", "IPAddressAllow")
_MAKING: Final = frozenset({"init", "join"})
"""Of `rubrica hsm`: they make tokens, whose PINs root makes beforehand."""
_PINS: Final = Path("/etc/rubrica/hsm")
"""Root's own."""
_VALUES: Final = frozenset({"--settings"})
"""Options before the command that another word belongs to."""
_KEPT: Final = ("LANG", "LC_ALL", "TERM", "RUBRICA_SETTINGS", "PGUSER")
"""Variables that a command may need."""


_TRIAL: Final = frozenset({"demo", "init", "up"})
_SETTINGS: Final = "/etc/rubrica/settings.toml"


def main() -> int:
    """Run a command as its role's user where root asks for it; else as it is."""
    program = str(Path(sys.argv[0]).resolve().with_name("rubrica"))
    arguments = sys.argv[1:]
    if os.geteuid() == 0:
        arguments = with_settings(arguments, os.environ)
    role = role_of(arguments)
    if os.geteuid() != 0 or role is None:
        os.execv(program, [program, *arguments])  # noqa: S606 (no shell is meant)
    role = of_this_host(arguments, role)
    before = pins_command(arguments)
    if before:
        done = subprocess.run([program, *before], check=False)  # noqa: S603 (our own words)
        if done.returncode != 0:
            sys.exit(done.returncode)
    gone = missing_credentials(unit_text(role))
    if gone:
        # systemd says nothing of it, but for status 243.
        told = f"{', '.join(gone)} {NOT_THERE}; {BRING_BACK}"
        if not Path(_SETTINGS).exists():
            told = f"{_SETTINGS}: is not there; run `rubrica setup`, which makes it"
        sys.stderr.write(f"{told}\n")
        sys.exit(78)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    held = not _ASKING.intersection(command_of(arguments)[:1])
    groups = _GROUPS.get(tuple(command_of(arguments)[:1]), ())
    options = unit_options(role, terminal=terminal, held=held, groups=groups)
    if before:
        options += [f"--property={each}" for each in so_pins(_PINS)]
    command = [*options, "--", program, *arguments]
    os.execvp("systemd-run", ["systemd-run", *command])  # noqa: S606, S607 (its PATH)


def with_settings(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """A command of root's, with the installation's settings where it names none.

    Never those of the folder that root happens to stand in: anybody could have put a
    file there that names a module to load.

    Args:
        arguments: after `rubrica`.
        environment: root's.
    """
    words = list(arguments)
    named = any(word.partition("=")[0] in _VALUES for word in words)
    command = next((word for word in words if not word.startswith("-")), "")
    ours = any(key[0] == command for key in ROLES) and command not in _TRIAL
    if not ours or named or environment.get("RUBRICA_SETTINGS"):
        return words
    return ["--settings", _SETTINGS, *words]


def role_of(arguments: Sequence[str]) -> str | None:
    """The role whose work a command is; None where it is nobody's in particular."""
    words = command_of(arguments)
    for length in (2, 1):
        found = tuple(words[:length])
        if found in ROLES:
            return ROLES[found]
    return None


def of_this_host(arguments: Sequence[str], role: str) -> str:
    """The role, or where it is masked, another one that may do a command too.

    What the database says of its tables, and of processes and hosts, every role with a
    user there may ask, also on a host that migrates nothing and has no password of
    `rubrica-migrate`.

    Args:
        arguments: after `rubrica`.
        role: whose work it is.
    """
    words = command_of(arguments)
    if words[:2] != ["database", "check"] and words[:1] != ["upgrade"]:
        return role
    return next((each for each in _ASK_DATABASE if unit_text(each)), role)


def command_of(arguments: Sequence[str]) -> list[str]:
    """What stands after the options before the command."""
    words = list(arguments)
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in _VALUES else 1 :]
    return words


def pins_command(arguments: Sequence[str]) -> list[str]:
    """What root runs before a command that makes tokens; empty before any other.

    Args:
        arguments: after `rubrica`.
    """
    words = command_of(arguments)
    is_making = words[:1] == ["hsm"] and not _MAKING.isdisjoint(words[1:2])
    if not is_making or not {"-h", "--help"}.isdisjoint(words):
        return []
    options = list(arguments[: len(arguments) - len(words)])
    asked = [word for word in words if word == "--ask-pin"]
    return [*options, "hsm", "pins", "--make", *asked]


def so_pins(folder: Path) -> list[str]:
    """Lines that hand over the SO PINs, which no unit has.

    Args:
        folder: of the PINs. While it is not root's own there are none, nor for a
            link: whose it was could have systemd read any file.
    """
    if not folder.is_dir() or folder.stat().st_uid != 0:
        return []
    return [
        f"LoadCredential={path.name}:{path}"
        for path in sorted(folder.iterdir())
        if path.stem.endswith("-so") and path.is_file() and not path.is_symlink()
    ]


def unit_options(
    role: str, *, terminal: bool, held: bool = True, groups: Sequence[str] = ()
) -> list[str]:
    """How `systemd-run` gives a command what the role's unit gives its process.

    Args:
        role: whose user runs it.
        terminal: whether a person types and reads.
        held: whether it reaches what the unit reaches, and no other address.
        groups: that the command needs besides `rubrica`.
    """
    unit = unit_text(role)
    kept = [f"--setenv={name}" for name in _KEPT if name in os.environ]
    properties = [
        f"User=rubrica-{role}",
        f"SupplementaryGroups={' '.join(('rubrica', *groups))}",
        "UMask=0007",
        "PrivateTmp=no",
        # Where that user may not be in it, as in root's own, it is none.
        f"WorkingDirectory=-{Path.cwd()}",
        *credentials_of(unit),
        *(ways_of(unit) if held else ()),
    ]
    return [
        "--quiet",
        "--collect",
        "--wait",
        "--pty" if terminal else "--pipe",
        *kept,
        *(f"--property={each}" for each in properties),
    ]


def unit_text(role: str) -> str:
    """A role's unit, with the drop-ins of this machine; of a masked one nothing."""
    for name in _INSTANCES.get(role, (role,)):
        text = _shown(f"rubrica-{name}.service")
        # Of a masked one systemctl(1) says that it is, in a comment.
        if "\n[" in f"\n{text}":
            return text
    return ""


def _shown(unit: str) -> str:
    """A unit and its drop-ins, as they are now."""
    show = ["systemctl", "cat", unit]
    for command in (show, ["systemctl", "daemon-reload"], show):
        done = subprocess.run(  # noqa: S603 (our own words)
            command, capture_output=True, text=True, check=False
        )
        if command is show and done.returncode == 0:
            break
        # A drop-in was removed, and systemd has yet to miss it: it shows no further.
    return done.stdout


def credentials_of(unit: str) -> list[str]:
    """The lines of a unit that give it credentials.

    Args:
        unit: its text, drop-ins after it. A line without a value takes back those
            before it (systemd.exec(5)).
    """
    return _lines_of(unit, _CREDENTIALS)


def missing_credentials(unit: str) -> list[str]:
    """Files that are handed to a role and are not there, for which it does not start.

    Args:
        unit: its text, drop-ins after it. One that is set in the unit itself as well
            may be gone, and one without a path is systemd's own to find
            (systemd.exec(5)).
    """
    given = [line.partition("=") for line in credentials_of(unit)]
    usual = {
        value.partition(":")[0] for kind, _, value in given if kind.startswith("S")
    }
    gone = []
    for _, _, value in given:
        name, _, path = value.partition(":")
        if path.startswith("/") and name not in usual and not Path(path).exists():
            gone.append(path)
    return gone


def ways_of(unit: str) -> list[str]:
    """The lines of a unit that say which addresses it may talk to, one an address.

    Args:
        unit: its text, drop-ins after it. A line without a value takes back those
            before it (systemd.resource-control(5)).
    """
    found = (line.partition("=") for line in _lines_of(unit, _WAYS))
    return [f"{key}={word}" for key, _, words in found for word in words.split()]


def _lines_of(unit: str, keys: Sequence[str]) -> list[str]:
    """Lines with some keys, but for those that were taken back."""
    found: list[str] = []
    for line in _whole_lines(unit):
        key, _, value = (part.strip() for part in line.partition("="))
        if key not in keys:
            continue
        if value:
            found.append(f"{key}={value}")
        else:
            found = [each for each in found if not each.startswith(f"{key}=")]
    return found


def _whole_lines(unit: str) -> Iterator[str]:
    """Lines of a unit, each with those that it goes on in; no comments.

    Source: systemd.syntax(7): a backslash at a line's end is a blank, and comments
    between such lines are none of them.
    """
    begun = ""
    for line in unit.splitlines():
        if line.lstrip().startswith(("#", ";")):
            continue
        if line.startswith("["):
            # Another file, or section: no line goes on beyond the end of its own.
            yield begun
            begun = ""
        if line.endswith("\\"):
            begun += f"{line[:-1]} "
            continue
        yield begun + line
        begun = ""
    yield begun
