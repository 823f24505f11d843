"""What signing workers say of their HSM, and what to do about it.

    for finding in look_at_workers(settings):
        print(finding.what, finding.remedy)

One that is well is enough for `/readyz`; here each is named, and so is each process of
any role that was killed or hangs.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from appliance.console.installation_state import SEEN
from appliance.keys.signing_hosts import ALIVE
from appliance.operations.backup import record
from appliance.operations.installation_checks import Finding
from appliance.secrets.pin_places import tokens_of
from appliance.settings import Settings, SettingsError


def look_at_workers(settings: Settings) -> Iterator[Finding]:
    """Processes that fell silent, and workers that cannot use a token.

    Args:
        settings: of the installation.
    """
    try:
        every = record.workers(settings)
    except SettingsError as exc:
        told = "; ".join(line.strip() for line in str(exc).splitlines())
        yield Finding(f"the record cannot be asked: {told}", "rubrica database check")
        return
    now = datetime.now(UTC)
    for slot, at, hsm, reason in every:
        if now - at > SEEN:
            continue
        if now - at > ALIVE:
            yield Finding(
                f"{slot}: silent since {at:%Y-%m-%d %H:%M:%S} UTC: killed, or it hangs",
                _start(slot),
            )
        elif slot.startswith("signing/") and (hsm != "ready" or reason):
            yield Finding(f"{slot}: {hsm} ({reason})", _remedy(settings, slot, reason))


def _start(slot: str) -> str:
    """Say how to start a process.

    Args:
        slot: `<role>/<host>/<n>`.
    """
    role, host, number = slot.split("/")
    unit = f"rubrica-{role}@{number}" if role == "signing" else f"rubrica-{role}"
    return f"on {host}: journalctl -u {unit} -n 20; systemctl start {unit}"


def _remedy(settings: Settings, slot: str, reason: str) -> str:
    """What to do about a worker.

    Args:
        settings: of the installation.
        slot: `signing/<host>/<n>`.
        reason: as it says.
    """
    _, host, number = slot.split("/")
    refused = [
        f"put the right PIN of {token.label} into {token.pin_file}"
        for _, token in tokens_of(settings)
        if f"token {token.label}: Pin" in reason
    ]
    if not refused:
        return "rubrica hsm check"
    # Nobody tries again by itself: further tries could lock the token.
    again = f"on {host}: rubrica hsm check; systemctl restart rubrica-signing@{number}"
    return "\n".join(dict.fromkeys([*refused, again]))
