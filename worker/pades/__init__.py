"""The signing engine: PAdES B-B to B-LTA as revisions appended to the original bytes.

`prepare`, then a key signs, then `assemble` and `check`; only the second of these
steps needs the signer's key, and none of them opens an HSM. `add_dss` and a
document timestamp raise the level of what is signed.
"""

from worker.pades.algorithms import SignatureMethod, method_for
from worker.pades.byte_range_digest import FileDigests
from worker.pades.cms import assemble
from worker.pades.document_timestamp import (
    PreparedTimestamp,
    fill_timestamp,
    prepare_timestamp,
)
from worker.pades.dss import Validated, add_dss
from worker.pades.prepare import PreparedSignature, SignaturePlan, prepare
from worker.pades.self_check import (
    CheckedSignature,
    SignatureCheckError,
    check,
    check_end,
    check_timestamp,
    method_of,
)
from worker.pades.timestamp_token import TimestampToken, read_token

__all__ = [
    "CheckedSignature",
    "FileDigests",
    "PreparedSignature",
    "PreparedTimestamp",
    "SignatureCheckError",
    "SignatureMethod",
    "SignaturePlan",
    "TimestampToken",
    "Validated",
    "add_dss",
    "assemble",
    "check",
    "check_end",
    "check_timestamp",
    "fill_timestamp",
    "method_for",
    "method_of",
    "prepare",
    "prepare_timestamp",
    "read_token",
]
