"""The few PKCS#11 calls that are made past the binding, and no others.

Those that one use of a wrapped key needs: the binding asks a token for ten attributes
of each key that it unwraps, and makes a Python class by them; for two keys that live a
millisecond that is half as long as the signature itself. Here a key is its handle. And
the start and end of a module that several threads call (`LockingLibrary`): the
binding's own start tells it that one thread will. All else is the binding's.

Source: PKCS#11 v2.40, 5.4, 5.7, 5.11, 5.14.
"""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_ubyte, c_ulong, c_void_p
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, cast

import pkcs11
from pkcs11 import Mechanism
from pkcs11._pkcs11 import lib
from pkcs11.mechanisms import GCMParams

from appliance.settings import SettingsError
from hsm_config.pkcs11.return_values import error_of
from hsm_config.pkcs11.templates import ExplicitTemplates, Template

_LONGEST_SIGNATURE: Final = 1024
"""Bytes of the room for a value: RSA with 8192 bits."""
_FUNCTIONS: Final = 68
_INITIALIZE, _FINALIZE = 0, 1
_DESTROY_OBJECT, _SIGN_INIT, _SIGN, _UNWRAP_KEY = 22, 42, 43, 61
"""Places in CK_FUNCTION_LIST. Source: PKCS#11 v2.40, appendix C; pkcs11f.h."""
_OS_LOCKING_OK: Final = 2
_CANT_LOCK: Final = 0x0A


class _Attribute(Structure):
    _fields_: ClassVar = [("type", c_ulong), ("value", c_void_p), ("length", c_ulong)]


class _Mechanism(Structure):
    _fields_: ClassVar = [
        ("mechanism", c_ulong),
        ("parameter", c_void_p),
        ("length", c_ulong),
    ]


class _GcmParameters(Structure):
    """CK_GCM_PARAMS. Source: PKCS#11 v2.40 current mechanisms, 2.12.3."""

    _fields_: ClassVar = [
        ("iv", c_char_p),
        ("iv_length", c_ulong),
        ("iv_bits", c_ulong),
        ("aad", c_char_p),
        ("aad_length", c_ulong),
        ("tag_bits", c_ulong),
    ]


class _InitializeArguments(Structure):
    """CK_C_INITIALIZE_ARGS. Source: PKCS#11 v2.40, 3.7."""

    _fields_: ClassVar = [
        ("mutexes", c_void_p * 4),
        ("flags", c_ulong),
        ("reserved", c_void_p),
    ]


class _FunctionList(Structure):
    """CK_FUNCTION_LIST. Source: PKCS#11 v2.40, 3.6."""

    _fields_: ClassVar = [
        ("version", c_ubyte * 2),
        ("functions", c_void_p * _FUNCTIONS),
    ]


class PackedTemplate:
    """A template as a module takes it; does for any number of calls.

    Args:
        template: attributes and their values.
    """

    def __init__(self, template: Template) -> None:
        mapper = ExplicitTemplates()
        self._values = [
            ctypes.create_string_buffer(value, len(value))
            for value in (
                bytes(mapper.pack_attribute(key, value))
                for key, value in template.items()
            )
        ]
        rows = [
            _Attribute(int(key), ctypes.addressof(value), len(value))
            for key, value in zip(template, self._values, strict=True)
        ]
        self.rows = (_Attribute * len(rows))(*rows)
        """CK_ATTRIBUTE_PTR; points into this object."""


class _Functions(NamedTuple):
    """A module's functions."""

    initialize: Any
    finalize: Any
    unwrap: Any
    sign_init: Any
    sign: Any
    destroy: Any


@lru_cache
def _functions(module: str) -> _Functions:
    """The functions of a module that the binding has loaded, too; found once.

    Args:
        module: its path.
    """
    found = POINTER(_FunctionList)()
    value = ctypes.CDLL(module).C_GetFunctionList(ctypes.byref(found))
    if value:
        raise error_of(value)
    table = found.contents.functions
    mechanism, attribute = POINTER(_Mechanism), POINTER(_Attribute)
    number = POINTER(c_ulong)

    def function(place: int, *arguments: Any) -> Any:
        # The GIL is let go of during each call, as the binding does.
        return ctypes.CFUNCTYPE(c_ulong, *arguments)(table[place])

    return _Functions(
        initialize=function(_INITIALIZE, POINTER(_InitializeArguments)),
        finalize=function(_FINALIZE, c_void_p),
        unwrap=function(
            _UNWRAP_KEY,
            c_ulong, mechanism, c_ulong, c_char_p, c_ulong, attribute, c_ulong, number,
        ),
        sign_init=function(_SIGN_INIT, c_ulong, mechanism, c_ulong),
        sign=function(_SIGN, c_ulong, c_char_p, c_ulong, c_char_p, number),
        destroy=function(_DESTROY_OBJECT, c_ulong, c_ulong),
    )  # fmt: skip


class LockingLibrary(lib):
    """A module that is started with CKF_OS_LOCKING_OK, for several threads.

    The binding knows C_Initialize(NULL) alone, by which a module may leave its
    mutexes out. It keeps in a word that is not to be written from here whether the
    module runs; so all that reads or sets that word is replaced.

    Args:
        so: the module's path.

    Raises:
        SettingsError: the module cannot lock.
        PKCS11Error: it does not start.
    """

    _runs = False

    @property
    def initialized(self) -> bool:  # type: ignore[override]  # read-only there, too
        """Whether it runs."""
        return self._runs

    def initialize(self) -> None:
        """C_Initialize, unless it runs.

        Raises:
            SettingsError: the module cannot lock.
            PKCS11Error: it does not start.
        """
        if self._runs:
            return
        arguments = _InitializeArguments(flags=_OS_LOCKING_OK)
        value = _functions(self.so).initialize(arguments)
        if value == _CANT_LOCK:
            msg = f"hsm.sessions: {self.so} cannot be called by several threads"
            raise SettingsError(f"{msg} (CKR_CANT_LOCK); set 1")
        if value:
            raise error_of(value)
        self._runs = True

    def finalize(self) -> None:
        """C_Finalize, if it runs.

        Raises:
            PKCS11Error: the module failed; it counts as ended.
        """
        if not self._runs:
            return
        self._runs = False
        value = _functions(self.so).finalize(None)
        if value:
            raise error_of(value)


class SessionCalls:
    """Calls by handle in a session that the binding opened.

    Args:
        library: the module.
        session: logged in.
    """

    def __init__(self, library: lib, session: pkcs11.Session) -> None:
        self._functions = _functions(library.so)
        # The binding's stubs know of no handle, its sessions have one.
        self._session: int = cast(Any, session).handle

    def unwrap(
        self,
        by: int,
        mechanism: Mechanism,
        parameter: bytes | GCMParams | None,
        blob: bytes,
        template: PackedTemplate,
    ) -> int:
        """C_UnwrapKey.

        Args:
            by: handle of the key that unwraps.
            mechanism: how.
            parameter: of the mechanism.
            blob: the wrapped key.
            template: what the key shall be.

        Returns:
            The key's handle; `destroy` it.

        Raises:
            PKCS11Error: the token failed or refused.
        """
        made = c_ulong()
        value = self._functions.unwrap(
            self._session,
            _mechanism(mechanism, parameter),
            by,
            blob,
            len(blob),
            template.rows,
            len(template.rows),
            made,
        )
        if value:
            raise error_of(value)
        return made.value

    def sign(
        self, key: int, mechanism: Mechanism, parameter: bytes | None, data: bytes
    ) -> bytes:
        """C_SignInit and C_Sign.

        Args:
            key: handle of a private key.
            mechanism: how.
            parameter: of the mechanism, as it lies in memory.
            data: what the mechanism signs.

        Raises:
            PKCS11Error: the token failed or refused.
        """
        room = ctypes.create_string_buffer(_LONGEST_SIGNATURE)
        length = c_ulong(_LONGEST_SIGNATURE)
        value = self._functions.sign_init(
            self._session, _mechanism(mechanism, parameter), key
        ) or self._functions.sign(self._session, data, len(data), room, length)
        if value:
            raise error_of(value)
        return room.raw[: length.value]

    def destroy(self, key: int) -> None:
        """C_DestroyObject.

        Raises:
            PKCS11Error: the token failed.
        """
        value = self._functions.destroy(self._session, key)
        if value:
            raise error_of(value)


def _mechanism(number: Mechanism, parameter: bytes | GCMParams | None) -> _Mechanism:
    """CK_MECHANISM; holds on to what it points at."""
    if parameter is None:
        return _Mechanism(int(number), None, 0)
    held: Any
    if isinstance(parameter, GCMParams):
        nonce = parameter.nonce
        held = _GcmParameters(
            nonce, len(nonce), 8 * len(nonce), None, 0, parameter.tag_bits
        )
    else:
        held = ctypes.create_string_buffer(parameter, len(parameter))
    made = _Mechanism(int(number), ctypes.addressof(held), ctypes.sizeof(held))
    made.held = held
    return made
