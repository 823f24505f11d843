"""Signing hosts that the fronts of a machine do not believe, for `rubrica doctor`."""

from collections.abc import Iterator, Sequence

from appliance.operations.installation_checks import Finding, answer_of
from appliance.operations.upgrade.command import REMEDY


def look_at_hosts(command: Sequence[str]) -> Iterator[Finding]:
    """Yield the hosts that are alive and to which no front here seals.

    Args:
        command: line of `rubrica upgrade --hosts`, as the role that may ask.
    """
    done = answer_of(command)
    if done.returncode == 0:
        return
    for line in done.stdout.splitlines():
        what, _, remedy = line.partition(REMEDY)
        yield Finding(what, remedy.replace("; here: ", "\nhere: "))
    if not done.stdout.strip():
        told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        yield Finding(told[-1], "rubrica upgrade")
