"""Inputs of the vectors of signatures."""

from typing import Any, Final

from tests.vectors.cases import DETAILS, NOON, ODD, PARAMETERS, Cases

_PDF: Final = (
    "%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    "2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
    "3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>\nendobj\n"
    "xref\n0 4\n0000000000 65535 f \n0000000009 00000 n \n0000000058 00000 n \n"
    "0000000115 00000 n \ntrailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n186\n%%EOF\n"
)
"""One empty page."""
_SIGNED: Final[dict[str, Any]] = {
    "pdf": _PDF,
    "digest": "sha256",
    "at": NOON,
    "name": "Ada Núñez",
    "cuil": "20267565393",
    "field": "Firma-7",
    "details": {},
    "parameters": {**PARAMETERS, "visible": False},
}
CMS: Final[Cases] = {
    f"{digest}{', with a token' if token else ''}": {
        "digest": digest,
        "content": b"the bytes of a ByteRange".hex(),
        "token": token,
    }
    for digest, token in [("sha256", ""), ("sha512", ""), ("sha256", "30030201ff")]
}
TIMESTAMPS: Final[Cases] = {
    "all that may stand there": {
        "digest": "sha256",
        "imprint": "ab" * 32,
        "nonce": 2**64,
        "null": True,
        "serial": 2**127,
        "at": "2026-05-25T09:00:07.120999-03:00",
        "accuracy": 1,
        "certificates": True,
    },
    "the least": {
        "digest": "sha512",
        "imprint": "cd" * 64,
        "nonce": None,
        "null": False,
        "serial": 1,
        "at": NOON,
        "accuracy": 2,
        "certificates": False,
    },
}
PDFS: Final[Cases] = {
    "invisible": _SIGNED,
    "certifies, with reason and place": {
        **_SIGNED,
        "digest": "sha512",
        "at": ODD,
        "parameters": {
            **PARAMETERS,
            "visible": False,
            "restriccion": "FORM_FILLING",
            "motivo": "Conforme",
            "lugar": "Neuquén",
        },
    },
    "a stamp": {**_SIGNED, "parameters": {**PARAMETERS, "x": 40, "y": 50}},
    "a stamp with a QR code": {
        **_SIGNED,
        "parameters": PARAMETERS,
        "details": {"maskedCuil": True, "qr": DETAILS["qr"]},
    },
}
CERTIFICATES: Final[Cases] = {
    vouched_by: {
        "url": "https://firma.example",
        "name": "Ada Núñez",
        "cuil": "20267565393",
        "vouchedBy": vouched_by,
    }
    for vouched_by in ("vouched", "officer", "external", "demo", "test")
}
REQUESTS: Final[Cases] = {"a person's": {"name": "Ada Núñez", "cuil": "20267565393"}}
REVOCATIONS: Final[Cases] = {
    "each reason": {
        "number": 7,
        "this": "2026-05-25T12:00:00+00:00",
        "next": "2026-06-01T12:00:00+00:00",
        "entries": [
            [f"0{number}ab", "2026-05-20T10:00:00+00:00", reason]
            for number, reason in enumerate(
                (
                    "unspecified",
                    "keyCompromise",
                    "affiliationChanged",
                    "superseded",
                    "cessationOfOperation",
                    "privilegeWithdrawn",
                )
            )
        ],
    },
}
