"""One of two tokens behind the logical HSM is taken away under load.

Source: design §5; docs/hsm-faults.md "Several tokens behind one logical HSM".
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import (
    LONGEST_S,
    assert_sound,
    troubled,
    until,
)
from tests.support.faults.retrying_callers import Crowd
from tests.support.hsm.hsm_installation import folder_of_token
from tests.support.hsm.pkcs11_shim import Pkcs11Shim

TWO = 'replicas = [{ label = "firma-2", pin_file = "secrets/firma-2.pin" }]'
BACK_S = 10.0
"""Within which a member that returned signs again."""


def uses(shim: Pkcs11Shim, token: str) -> int:
    """Signatures by users' keys on a token; those have no id there."""
    return sum(one.token == token and one.key == "-" for one in shim.signed())


def take_away(appliance: Appliance, label: str) -> Callable[[], Path]:
    """Remove a token's folder; gives what brings it back."""
    folder = folder_of_token(appliance.folder / "hsm" / "tokens", label)
    away = appliance.folder / "hsm" / "away"
    folder.rename(away)
    return lambda: away.rename(folder)


@pytest.mark.parametrize(
    ("calls", "longest_s", "most_back_s"),
    [
        pytest.param(20, None, None, id="20"),
        pytest.param(400, LONGEST_S, BACK_S, id="400", marks=pytest.mark.long),
    ],
)
def test_member_taken_away_under_load_loses_nothing(
    calls: int,
    longest_s: float | None,
    most_back_s: float | None,
    record_property: Callable[[str, object], None],
) -> None:
    """All is signed once; the member that returns is used again, by itself."""
    # None hangs: a machine that does much else has every call end.
    with troubled(hsm=TWO, call_limit_s=60) as (appliance, shim):
        people = [appliance.new_person(f"Persona {n}") for n in range(4)]
        workers = {process.pid for process in appliance.children("signing")}
        crowd = Crowd(appliance, people, pdfs.one_page(), at_least=calls)
        with crowd.calling():
            until(lambda: uses(shim, "firma") > 2 and uses(shim, "firma-2") > 2)
            bring_back = take_away(appliance, "firma")
            alone = uses(shim, "firma-2")
            until(lambda: uses(shim, "firma-2") >= alone + calls // 4)
            before = uses(shim, "firma")
            bring_back()
            returned = time.monotonic()
            until(lambda: uses(shim, "firma") > before)
            back_s = time.monotonic() - returned

        assert_sound(crowd, before=0, longest_s=longest_s)
        assert {process.pid for process in appliance.children("signing")} == workers
        assert "HSM_UNAVAILABLE" not in str(crowd.answers)
        assert most_back_s is None or back_s < most_back_s
        record_property("calls", len(crowd.calls))
        record_property("back_s", round(back_s, 1))
        record_property("longest_wait_s", round(crowd.longest_wait_s, 1))
        record_property("signed_on", {t: uses(shim, t) for t in ("firma", "firma-2")})
