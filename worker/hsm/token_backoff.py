"""Leaving a token alone for a while after a call to it hung.

Each further hang costs the whole process, and with it the tokens that work; so
the next start begins without that one, as long as another can serve.
"""

import time
from collections.abc import Sequence
from typing import Final

from appliance.domain.keys import TokenRole
from appliance.runtime.hang_watchdog import CallWatch
from worker.hsm.connection import HsmConnection, HsmStatus

_REST_S: Final = 60.0
"""After the first hang, in seconds; it doubles with each further one."""
_MOST_REST_S: Final = 900.0


def rests(
    one: HsmConnection, connections: Sequence[HsmConnection], watch: CallWatch
) -> bool:
    """Whether a token is left alone for now.

    Args:
        one: the token.
        connections: all of the process.
        watch: tells at which tokens calls hung, those of earlier starts included.

    Returns:
        False where no other token could serve: then there is nothing to lose.
    """
    peers = [
        peer
        for peer in connections
        if peer.token.role is TokenRole.FIRMA
        and peer is not one
        and peer.status is not HsmStatus.PIN
    ]
    if not peers:
        return False
    hangs, at_s = watch.hangs(one.token.number)
    rest_s = min(_REST_S * 2.0 ** (hangs - 1), _MOST_REST_S)
    if not hangs or time.monotonic() - at_s >= rest_s:
        return False
    # Of members that all hung, the one that hung first is tried first.
    of_peers = [watch.hangs(peer.token.number) for peer in peers]
    return one.token.role is TokenRole.PKI or any(
        not times or before_s < at_s for times, before_s in of_peers
    )
