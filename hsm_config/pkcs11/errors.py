"""What a PKCS#11 call can answer, in five kinds: the whole vocabulary.

A vendor's codes are beyond listing, what there is to do about them is not. Each
exception of the binding has its kind here, once; docs/hsm-faults.md tells what
follows from each. `HANG` is no answer: it is what the watch from outside ends.

Source: PKCS#11 v2.40, 5.1 "Function return values".
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pkcs11 import exceptions as p11


class HsmFault(StrEnum):
    """What went wrong, by what helps."""

    SESSION = "session"
    """Session, login or handles are gone: a fresh start on the same token helps."""
    DEVICE = "device"
    """Token or device is away or broken: another member helps, or its return."""
    PIN = "pin"
    """The token did not take the PIN: a person helps, and a second try may lock."""
    REFUSED = "refused"
    """A healthy token says no to this request: asking again does not help."""
    HANG = "hang"
    """The call did not return within `hsm.call_limit_s`: killing helps."""


_SESSION: Final = (
    p11.AnotherUserAlreadyLoggedIn,
    p11.FunctionCancelled,
    p11.KeyHandleInvalid,
    p11.NoEvent,
    p11.NoSuchKey,
    p11.ObjectHandleInvalid,
    p11.OperationActive,
    p11.OperationNotInitialized,
    p11.SessionClosed,
    p11.SessionCount,
    p11.SessionExists,
    p11.SessionHandleInvalid,
    p11.SessionReadOnly,
    p11.SessionReadOnlyExists,
    p11.SessionReadWriteSOExists,
    p11.UnwrappingKeyHandleInvalid,
    p11.UserAlreadyLoggedIn,
    p11.UserNotLoggedIn,
    p11.UserTooManyTypes,
    p11.WrappingKeyHandleInvalid,
)
_DEVICE: Final = (
    p11.DeviceError,
    p11.DeviceMemory,
    p11.DeviceRemoved,
    p11.FunctionFailed,
    p11.GeneralError,
    p11.HostMemory,
    p11.NoSuchToken,
    p11.RandomNoRNG,
    p11.SlotIDInvalid,
    p11.TokenNotPresent,
    p11.TokenNotRecognised,
    p11.TokenWriteProtected,
)
_PIN: Final = (
    p11.PinExpired,
    p11.PinIncorrect,
    p11.PinInvalid,
    p11.PinLenRange,
    p11.PinLocked,
    p11.PinTooWeak,
    p11.UserPinNotInitialized,
)
_REFUSED: Final = (
    p11.ArgumentsBad,
    p11.AttributeReadOnly,
    p11.AttributeSensitive,
    p11.AttributeTypeInvalid,
    p11.AttributeValueInvalid,
    p11.DataInvalid,
    p11.DataLenRange,
    p11.DomainParamsInvalid,
    p11.EncryptedDataInvalid,
    p11.EncryptedDataLenRange,
    p11.ExceededMaxIterations,
    p11.FunctionNotSupported,
    p11.FunctionRejected,
    p11.KeyIndigestible,
    p11.KeyNeeded,
    p11.KeyNotNeeded,
    p11.KeyNotWrappable,
    p11.KeySizeRange,
    p11.KeyTypeInconsistent,
    p11.KeyUnextractable,
    p11.MechanismInvalid,
    p11.MechanismParamInvalid,
    p11.MultipleObjectsReturned,
    p11.MultipleTokensReturned,
    p11.PublicKeyInvalid,
    p11.RandomSeedNotSupported,
    p11.SignatureInvalid,
    p11.SignatureLenRange,
    p11.TemplateIncomplete,
    p11.TemplateInconsistent,
    p11.UnwrappingKeySizeRange,
    p11.UnwrappingKeyTypeInconsistent,
    p11.WrappedKeyInvalid,
    p11.WrappedKeyLenRange,
    p11.WrappingKeySizeRange,
    p11.WrappingKeyTypeInconsistent,
)

FAULTS: Final[Mapping[type[p11.PKCS11Error], HsmFault]] = {
    error: fault
    for fault, errors in (
        (HsmFault.SESSION, _SESSION),
        (HsmFault.DEVICE, _DEVICE),
        (HsmFault.PIN, _PIN),
        (HsmFault.REFUSED, _REFUSED),
    )
    for error in errors
}
"""The kind of each exception of the binding."""


def classify(exc: p11.PKCS11Error) -> HsmFault:
    """The kind of a failure.

    Args:
        exc: as the binding raised it.

    Returns:
        Its kind; `SESSION` for a code that the binding has no name for (a
        vendor's own, a module that is not initialised): starting anew is cheap,
        and what that does not mend is then taken for a device that is away.
    """
    return FAULTS.get(type(exc), HsmFault.SESSION)


def may_mean_no(exc: p11.PKCS11Error) -> bool:
    """Whether some make answers so where it means to refuse.

    Args:
        exc: as the binding raised it.

    Returns:
        True for a refusal, and for the codes that say nothing: whoever gets one
        of these must ask something that a healthy token does not refuse.
    """
    vague = {p11.PKCS11Error, p11.GeneralError, p11.FunctionFailed}
    return type(exc) in vague or classify(exc) is HsmFault.REFUSED


def said_no(exc: p11.PKCS11Error) -> str:
    """Why a token did not open a blob.

    Args:
        exc: what the unwrapping raised.

    Raises:
        PKCS11Error: the same, where it says that the token is in trouble.
    """
    if not may_mean_no(exc):
        raise exc
    # Modules have a dozen codes for it; SoftHSM says CKR_GENERAL_ERROR.
    return f"a wrapped key does not open: {type(exc).__name__}"
