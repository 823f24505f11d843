"""What is amiss with parts of an installation: units, folders, settings, room.

    for finding in look_at_units(settings):
        print(finding.what, finding.remedy)

Nothing is changed. Root alone sees it all.
"""

import contextlib
import grp
import http.client
import json
import os
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.cli.as_role import (
    BRING_BACK,
    NOT_THERE,
    missing_credentials,
    unit_options,
    unit_text,
)
from appliance.cli.installation.listener import ask_api
from appliance.operations import system
from appliance.operations.systemd_units import ROLES, left_out, shown, signing_workers
from appliance.settings import METRICS, Settings

_UNITS: Final = (
    *("migrate", "sandbox", "metrics"),
    *(r for r in ROLES if r != "signing"),
)
_TIMED: Final = ("rubrica-backup.service", "rubrica-audit-verify.service")
"""Run by timers, where somebody enabled those."""
_TMPFILES: Final = (
    Path("/usr/lib/tmpfiles.d/rubrica.conf"),
    # Documents elsewhere; `rubrica setup` writes it.
    Path("/etc/tmpfiles.d/rubrica-documents.conf"),
)
_UNHANDED: Final = "243"
"""Exit status of a unit that is to be handed a file that is not there."""
_SPARE_BYTES: Final = 2 * 1024**3
LOOK_S: Final = 60
"""Longest that the command of one look may take, in seconds: what it asks may hang."""
_GONE_S: Final = 1.0
"""Longest wait for a command that was killed. One that reads a folder of a network file
system that hangs does not end before that does."""
_LATE: Final = 124
"""Exit status of a command that was given up, as timeout(1) has it."""
_OK: Final = 200
_HARDWARE: Final = 'move the keys to a hardware HSM (docs/hsm.md, "Makes of HSM")'
_WHY: Final = {
    "78": "its settings, or a file that they name, cannot be used",
    "200": "its user may not be in its working directory",
    "243": "a file that LoadCredential= of its unit names is not there",
    "217": "its user is not there; run `rubrica setup`",
    "203": "its program is not there; install the package again",
}
"""Exit status of a unit in words. Source: sysexits(3); systemd.exec(5)."""
_READY: Final = {
    "NOT_MIGRATED": "rubrica migrate",
    "TABLES_TOO_NEW": "rubrica database check tells which Rúbrica may use the tables",
    "NO_WORKER": "no signing worker runs: systemctl status 'rubrica-signing@*'",
    "HSM_UNAVAILABLE": "the workers' HSM does not answer: rubrica hsm check; where "
    "that is well, their unit keeps its device or a folder from them: "
    "systemctl cat rubrica-signing@1",
    "HSM_TAKEN_OVER": "the HSM serves another restore of this record; if this is the "
    "one that goes on: rubrica hsm take-over",
    "HOST_NOT_ADMITTED": "no signing host is admitted on this machine: on the signing "
    "host: rubrica hsm host-key; here: rubrica hsm admit NAME KEY",
    "STORE_UNAVAILABLE": "the database answers, and not us: rubrica database check; "
    "journalctl -u postgresql -n 20 on its host",
    "DOCUMENTS_AWAY": "the documents' folder is missing (mount it), their bucket does "
    "not answer, or it is another installation's: rubrica documents check",
    "SANDBOX_UNAVAILABLE": "systemctl status rubrica-sandbox",
    "CLOCK_DRIFT": "mend time synchronisation here and on the database's host",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something amiss."""

    what: str
    remedy: str = ""
    """What to do; empty where `what` says so."""
    is_warning: bool = False
    """Shown, and no reason for an exit status."""
    is_unseen: bool = False
    """Nothing is wrong that is known: it says what was not looked at here."""

    @property
    def mark(self) -> str:
        """First word of its line."""
        if self.is_unseen:
            return "none"
        return "warn" if self.is_warning else "AMISS"


def look_at_units(settings: Settings) -> Iterator[Finding]:
    """Roles that do not run, and sockets that listen elsewhere than the settings say.

    Of a role that is not of this host it is amiss where it runs.

    Args:
        settings: of the installation.
    """
    others = left_out()
    units = [
        unit
        for unit in _UNITS
        if unit not in others and (unit != METRICS or settings.metrics.listen)
    ]
    workers = signing_workers()
    if not workers and "signing" not in others:
        yield Finding("no signing worker is there", "systemctl start rubrica.target")
    yield from _look_at_running(
        (*(f"rubrica-{unit}.service" for unit in units), *workers)
    )
    yield from _look_at_others(others)
    for name in _TIMED:
        if shown(name, "ActiveState") == "failed":
            told = f"{name} failed when it ran last"
            yield Finding(told, f"journalctl -u {name} -n 20\nsystemctl start {name}")
    for face in ("api", "embed", "admin"):
        yield from _look_at_socket(face, settings.web.listen(face))


def _look_at_running(names: Sequence[str]) -> Iterator[Finding]:
    """Units that are not active, and why."""
    for name in names:
        state = shown(name, "ActiveState")
        if state == "active":
            continue
        status = shown(name, "ExecMainStatus")
        why = _WHY.get(status, "")
        told = f"{name} is {state}" + (f" ({status}): {why}" if why else "")
        again = f"systemctl reset-failed {name}; systemctl start {name}"
        role = name.removeprefix("rubrica-").partition(".")[0].partition("@")[0]
        gone = missing_credentials(unit_text(role)) if status == _UNHANDED else []
        if gone:
            told = f"{name} is {state} ({status}): {', '.join(gone)} {NOT_THERE}"
            yield Finding(told, f"{BRING_BACK}\n{again}")
        else:
            yield Finding(told, f"journalctl -u {name} -n 20\n{again}")


def _look_at_others(roles: Sequence[str]) -> Iterator[Finding]:
    """What runs or listens of roles that are not of this host."""
    for role in roles:
        name = f"rubrica-{'signing@*' if role == 'signing' else role}.service"
        # What migrated is active until the machine stops; it does nothing any more.
        if role != "migrate" and "active" in shown(name, "ActiveState").split():
            yield Finding(f"{name} is masked and runs", f"systemctl stop '{name}'")
        socket = f"rubrica-{role}.socket"
        if shown(socket, "ActiveState") == "active":
            told = f"{socket} listens for a role that is masked"
            yield Finding(told, f"systemctl mask --now {socket}")


def _look_at_socket(face: str, wanted: str) -> Iterator[Finding]:
    """A socket unit that listens elsewhere than the settings say."""
    listens = shown(f"rubrica-{face}.socket", "Listen").partition(" ")[0]
    if wanted and listens and listens != wanted.removeprefix("unix:"):
        what = f"rubrica-{face}.socket listens on {listens}, web.listen_{face} says"
        yield Finding(
            f"{what} {wanted}", f"systemctl edit rubrica-{face}.socket, restart it"
        )


def look_at_folders() -> Iterator[Finding]:
    """Folders whose owner or mode is not that of tmpfiles.conf."""
    there = [path for path in _TMPFILES if path.exists()]
    if _TMPFILES[0] not in there:
        yield Finding(f"{_TMPFILES[0]} is not there", "install the package again")
    for line in "\n".join(path.read_text("utf-8") for path in there).splitlines():
        words = line.split()
        if not words or words[0] != "d":
            continue
        path, mode, user, group = words[1:5]
        wanted = f"{int(mode, 8):04o} {user} {group}"
        has = owned(Path(path))
        if has != wanted:
            yield Finding(f"{path} is {has}, and not {wanted}", "rubrica setup")


def owned(path: Path) -> str:
    """Mode, user and group of a folder."""
    try:
        state = path.stat()
    except OSError as exc:
        return exc.strerror or "not there"
    user, group = str(state.st_uid), str(state.st_gid)
    with contextlib.suppress(KeyError):  # a user or group that is gone
        user = pwd.getpwuid(state.st_uid).pw_name
        group = grp.getgrgid(state.st_gid).gr_name
    return f"{state.st_mode & 0o7777:04o} {user} {group}"


def look_at_settings(file: Path = system.SETTINGS) -> Iterator[Finding]:
    """Faults of the settings and of the files that they name, by role and user.

    Roles that are not of this host have none of their files here.

    Args:
        file: the settings.
    """
    told: set[str] = set()
    others = left_out()
    for role in (*ROLES, "migrate"):
        if role in others:
            continue
        command = system.rubrica_command(
            "check-config", "--role", role, settings_file=file
        )
        # The program itself: the other one has it run as root.
        command[0] = str(Path(command[0]).with_name("rubrica"))
        if gone := missing_credentials(unit_text(role)):
            yield Finding(f"{role}: {', '.join(gone)} {NOT_THERE}", BRING_BACK)
            continue
        options = unit_options(role, terminal=False)
        for line in faults_of(["systemd-run", *options, "--", *command]):
            if line not in told:
                told.add(line)
                yield Finding(f"{role}: {line}")


def look_at_service(settings: Settings) -> Iterator[Finding]:
    """What `/readyz` tells, in words.

    Args:
        settings: of the installation.
    """
    try:
        status, answer = ask_api(settings, "/readyz")
    except (OSError, ValueError, http.client.HTTPException) as exc:
        told = f"the API does not answer: {str(exc) or type(exc).__name__}"
        yield Finding(told, "systemctl start rubrica-api; rubrica check-ports")
        return
    if status == _OK:
        return
    try:
        states = dict(json.loads(answer)["checks"])
    except (ValueError, KeyError, TypeError):
        states = {}
    # One fault of the database is that of all who ask it.
    amiss: dict[str, list[str]] = {}
    for name, state in states.items():
        if state != "ok":
            amiss.setdefault(state, []).append(name)
    for state, names in (amiss or {str(status): ["/readyz answers"]}).items():
        yield Finding(f"{', '.join(names)}: {state}", _READY.get(state, ""))


def look_at_disk(settings: Settings) -> Iterator[Finding]:
    """Room for documents; how much a bucket has, nobody says.

    Args:
        settings: of the installation.
    """
    if settings.documents.url is not None:
        return
    try:
        room = os.statvfs(settings.documents_dir)
    except OSError as exc:
        yield Finding(f"{settings.documents_dir}: {exc.strerror}", "rubrica setup")
        return
    free = room.f_bavail * room.f_frsize
    if free < _SPARE_BYTES:
        yield Finding(f"{settings.documents_dir}: {free >> 20} MiB are left")


def look_at_hsm_kind(
    command: list[str], *, signs_here: bool = True
) -> Iterator[Finding]:
    """Yield a warning where production keys are in a software token.

    Args:
        command: line of `rubrica hsm kind`.
        signs_here: signing workers are of this host. Elsewhere a profile of one's own
            need not be there: where it is not, the kind is not known, and not wrong.
    """
    done = answer_of(command)
    if done.returncode == 1:
        yield Finding(done.stdout.strip(), _HARDWARE, is_warning=True)
    elif done.returncode:
        told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        if signs_here:
            yield Finding(told[-1], "rubrica hsm kind")
        else:
            what = f"not known here: {told[-1]}"
            yield Finding(what, "on a signing host: rubrica hsm kind", is_unseen=True)


def look_at_clock() -> Iterator[Finding]:
    """Whether something keeps this machine's clock right."""
    command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    if done.stdout.strip() == "no" and not Path("/run/systemd/container").exists():
        yield Finding(
            "nothing sets this machine's clock", "install chrony or systemd-timesyncd"
        )


def answer_of(
    command: Sequence[str], limit_s: float | None = LOOK_S
) -> subprocess.CompletedProcess[str]:
    """Run a command and give it up if it takes too long.

    Args:
        command: our own words; no shell reads them.
        limit_s: in seconds; None: it may take any time.

    Returns:
        How it ended. One that was given up has failed, and its last line says so.
    """
    process = subprocess.Popen(  # noqa: S603 (our own words, no shell)
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GONE_S)
        told = f"not looked at: no answer within {limit_s} s, what it asks hangs"
        return subprocess.CompletedProcess(process.args, _LATE, "", told)
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def faults_of(command: list[str], limit_s: float | None = LOOK_S) -> list[str]:
    """Return the error output of a command; nothing if it succeeds.

    Args:
        command: our own words; no shell reads them.
        limit_s: longest that it may take, in seconds; None: any time.
    """
    done = answer_of(command, limit_s)
    if done.returncode == 0:
        return []
    why = _WHY.get(str(done.returncode), "")
    told = (done.stderr or done.stdout).strip().splitlines()
    return told or [f"it ended with status {done.returncode}: {why}".rstrip(": ")]
