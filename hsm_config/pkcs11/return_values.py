"""The binding's exception for each return value, for calls that go past it.

The binding has this table too, but lends it to nobody; a test compares the two.

Source: PKCS#11 v2.40, 5.1 "Function return values"; header file pkcs11t.h.
"""

from collections.abc import Mapping
from typing import Final

from pkcs11 import exceptions as p11

_KEY_FUNCTION_NOT_PERMITTED: Final = 0x68

ERRORS: Final[Mapping[int, type[p11.PKCS11Error]]] = {
    0x002: p11.HostMemory,
    0x003: p11.SlotIDInvalid,
    0x005: p11.GeneralError,
    0x006: p11.FunctionFailed,
    0x007: p11.ArgumentsBad,
    0x008: p11.NoEvent,
    0x010: p11.AttributeReadOnly,
    0x011: p11.AttributeSensitive,
    0x012: p11.AttributeTypeInvalid,
    0x013: p11.AttributeValueInvalid,
    0x020: p11.DataInvalid,
    0x021: p11.DataLenRange,
    0x030: p11.DeviceError,
    0x031: p11.DeviceMemory,
    0x032: p11.DeviceRemoved,
    0x040: p11.EncryptedDataInvalid,
    0x041: p11.EncryptedDataLenRange,
    0x050: p11.FunctionCancelled,
    0x054: p11.FunctionNotSupported,
    0x060: p11.KeyHandleInvalid,
    0x062: p11.KeySizeRange,
    0x063: p11.KeyTypeInconsistent,
    0x064: p11.KeyNotNeeded,
    0x066: p11.KeyNeeded,
    0x067: p11.KeyIndigestible,
    0x069: p11.KeyNotWrappable,
    0x06A: p11.KeyUnextractable,
    0x070: p11.MechanismInvalid,
    0x071: p11.MechanismParamInvalid,
    0x082: p11.ObjectHandleInvalid,
    0x090: p11.OperationActive,
    0x091: p11.OperationNotInitialized,
    0x0A0: p11.PinIncorrect,
    0x0A1: p11.PinInvalid,
    0x0A2: p11.PinLenRange,
    0x0A3: p11.PinExpired,
    0x0A4: p11.PinLocked,
    0x0B0: p11.SessionClosed,
    0x0B1: p11.SessionCount,
    0x0B3: p11.SessionHandleInvalid,
    0x0B5: p11.SessionReadOnly,
    0x0B6: p11.SessionExists,
    0x0B7: p11.SessionReadOnlyExists,
    0x0B8: p11.SessionReadWriteSOExists,
    0x0C0: p11.SignatureInvalid,
    0x0C1: p11.SignatureLenRange,
    0x0D0: p11.TemplateIncomplete,
    0x0D1: p11.TemplateInconsistent,
    0x0E0: p11.TokenNotPresent,
    0x0E1: p11.TokenNotRecognised,
    0x0E2: p11.TokenWriteProtected,
    0x0F0: p11.UnwrappingKeyHandleInvalid,
    0x0F1: p11.UnwrappingKeySizeRange,
    0x0F2: p11.UnwrappingKeyTypeInconsistent,
    0x100: p11.UserAlreadyLoggedIn,
    0x101: p11.UserNotLoggedIn,
    0x102: p11.UserPinNotInitialized,
    0x104: p11.AnotherUserAlreadyLoggedIn,
    0x105: p11.UserTooManyTypes,
    0x110: p11.WrappedKeyInvalid,
    0x112: p11.WrappedKeyLenRange,
    0x113: p11.WrappingKeyHandleInvalid,
    0x114: p11.WrappingKeySizeRange,
    0x115: p11.WrappingKeyTypeInconsistent,
    0x120: p11.RandomSeedNotSupported,
    0x121: p11.RandomNoRNG,
    0x130: p11.DomainParamsInvalid,
    0x1B5: p11.ExceededMaxIterations,
    0x1B8: p11.PinTooWeak,
    0x1B9: p11.PublicKeyInvalid,
    0x200: p11.FunctionRejected,
}
"""The exceptions, by their CKR."""


def error_of(value: int) -> p11.PKCS11Error:
    """The exception that stands for a return value other than CKR_OK.

    Args:
        value: the CKR.

    Returns:
        Of the binding's class; for a key that may not do this, for which the
        binding has none because it looks first, a plain refusal; else, as there,
        `PKCS11Error` with the number.
    """
    if value == _KEY_FUNCTION_NOT_PERMITTED:
        return p11.FunctionRejected("that key may not do this")
    error = ERRORS.get(value)
    return p11.PKCS11Error(f"code {value:#x}") if error is None else error()
