"""The signing engine: PAdES B-B as one revision appended to the original bytes.

`prepare`, then a key signs, then `assemble` and `check`; only the second of these
steps needs the signer's key, and none of them opens an HSM.
"""

from worker.pdf.assemble import assemble
from worker.pdf.check import SignatureCheckError, check, method_of
from worker.pdf.method import SignatureMethod, method_for
from worker.pdf.prepare import PreparedSignature, SignaturePlan, prepare

__all__ = [
    "PreparedSignature",
    "SignatureCheckError",
    "SignatureMethod",
    "SignaturePlan",
    "assemble",
    "check",
    "method_for",
    "method_of",
    "prepare",
]
