"""What goes to a module in memory, where no make of the tests tries it."""

import ctypes
import struct

from pkcs11 import Mechanism
from pkcs11.mechanisms import GCMParams

from hsm_config.pkcs11.raw_pkcs11 import _mechanism


def test_parameters_of_gcm_lie_in_memory_as_ck_gcm_params() -> None:
    """IV, its bytes, its bits, no AAD, tag bits: those of PKCS#11 v2.40."""
    nonce = bytes(range(12))

    made = _mechanism(Mechanism.AES_GCM, GCMParams(nonce, None, 128))

    raw = ctypes.string_at(made.parameter, made.length)
    iv, size, bits, aad, aad_size, tag_bits = struct.unpack("@PLLPLL", raw)
    assert (size, bits, aad, aad_size, tag_bits) == (12, 96, 0, 0, 128)
    assert ctypes.string_at(iv, size) == nonce
    assert made.mechanism == Mechanism.AES_GCM
