"""Each answer of PKCS#11 that the binding knows has its kind."""

import pkcs11
import pytest
from pkcs11 import exceptions

from hsm_config.pkcs11.errors import FAULTS, HsmFault, classify


def test_each_exception_of_the_binding_has_one_kind() -> None:
    """A new version of the binding cannot bring one that nobody classified."""
    known = {
        value
        for value in vars(exceptions).values()
        if isinstance(value, type) and issubclass(value, pkcs11.PKCS11Error)
    }

    assert set(FAULTS) == known - {pkcs11.PKCS11Error}
    assert HsmFault.HANG not in FAULTS.values()


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (exceptions.SessionHandleInvalid, HsmFault.SESSION),
        (exceptions.UserNotLoggedIn, HsmFault.SESSION),
        (exceptions.ObjectHandleInvalid, HsmFault.SESSION),
        (exceptions.DeviceRemoved, HsmFault.DEVICE),
        (exceptions.GeneralError, HsmFault.DEVICE),
        (exceptions.PinLocked, HsmFault.PIN),
        (exceptions.MechanismInvalid, HsmFault.REFUSED),
    ],
)
def test_kind_says_what_helps(error: type[Exception], fault: HsmFault) -> None:
    """One of each, as docs/hsm-faults.md has them."""
    raised = error()
    assert isinstance(raised, pkcs11.PKCS11Error)

    assert classify(raised) is fault


def test_code_without_a_name_starts_anew() -> None:
    """A vendor's own code, or a module that is not initialised."""
    assert classify(pkcs11.PKCS11Error("Unmapped error code")) is HsmFault.SESSION
