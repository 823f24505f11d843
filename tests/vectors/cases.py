"""Inputs of the vectors: what each format is written from.

A case that is new here gets its vector by `python -m tests.tools.make_vectors`; one
that stands in a file already is read from there.
"""

from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

Cases = dict[str, dict[str, Any]]

A: Final = "11111111-1111-4111-8111-111111111111"
B: Final = "22222222-2222-4222-8222-222222222222"
C: Final = "33333333-3333-4333-8333-333333333333"
D: Final = "44444444-4444-4444-8444-444444444444"
NOON: Final = "2026-05-25T12:00:00.000000+00:00"
SOON: Final = "2026-05-25T12:01:00.000000+00:00"
ODD: Final = "2026-05-25T09:00:07.000123-03:00"
DOCUMENT: Final = "ab" * 32

PARAMETERS: Final[dict[str, Any]] = {
    "fontColor": "BLACK",
    "fontName": "Serif",
    "fontSize": 12,
    "fontStyle": "PLAIN",
    "page": 1,
    "x": None,
    "y": None,
    "zoomPercent": 100,
    "restriccion": "NO_VALUE",
    "visible": True,
}
"""All the defaults."""
EVERYTHING: Final[dict[str, Any]] = {
    **PARAMETERS,
    "fontColor": "#12AB34",
    "fontName": "Monospaced",
    "fontSize": 9,
    "fontStyle": "BOLD_ITALIC",
    "page": 3,
    "x": 20,
    "y": 700,
    "zoomPercent": 150,
    "restriccion": "FORM_FILLING_AND_ANNOTATIONS",
    "visible": False,
    "campo": "Firmas.Director",
    "motivo": "Aprobación — «ñandú» €",
    "lugar": "San Martín de los Andes",
    "cuil": "ENMASCARADO",
    "qr": True,
    "logo": False,
}
"""Every field given, none of them the default."""
DETAILS: Final[dict[str, Any]] = {
    "maskedCuil": True,
    "qr": "https://firma.example/verificar/00000000000000000000000000",
    "logo": {"sha256": "cd" * 32, "width": 400, "height": 12},
}


def _activation(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "activation": A,
        "person": B,
        "credential": C,
        "keyVersion": 1,
        "items": list(items),
        "factors": ["pwd", "otp", "sign-pwd"],
        "created": NOON,
        "claimBy": SOON,
        **more,
    }


def _item(request: int, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "request": request,
        "documentSha256": f"{request:064x}",
        "parameters": parameters,
        **more,
    }


ACTIVATIONS: Final = {
    "one plain document": _activation(_item(7, PARAMETERS)),
    "every field of a command": _activation(
        _item(9007199254740991, EVERYTHING, stamp=DETAILS), keyVersion=12
    ),
    "several documents, other factors": _activation(
        _item(3, PARAMETERS),
        _item(1, {**PARAMETERS, "x": 0, "y": 0}, stamp={"maskedCuil": True}),
        _item(2, {**PARAMETERS, "motivo": "a"}, stamp={"qr": "https://a"}),
        factors=["hwk", "sign-pwd"],
        created="2026-12-31T23:59:59.999999+00:00",
        claimBy="2027-01-01T00:00:59.999999+00:00",
    ),
}
ISSUES: Final = {
    f"{algorithm}, {vouched_by}": {
        "task": A,
        "person": B,
        "credential": A,
        "algorithm": algorithm,
        "vouchedBy": vouched_by,
    }
    for algorithm, vouched_by in [
        ("rsa-2048", "demo"),
        ("rsa-3072", "officer"),
        ("ec-p256", "vouched"),
        ("ec-p384", "external"),
    ]
}
CSRS: Final = {
    "a request": {"task": A, "person": B, "credential": C, "keyVersion": 1},
}
SEALS: Final = {
    "an unlock key": {
        "private": "40" * 32,
        "public": X25519PrivateKey.from_private_bytes(b"@" * 32)
        .public_key()
        .public_bytes_raw()
        .hex(),
        "info": "ef" * 32,
        "unlock": "07" * 32,
    },
}
OUTERS: Final = {
    "a wrapped key": {
        "installation": "rubrica",
        "person": B,
        "credential": C,
        "keyVersion": 1,
        "spki": "3059301306072a8648ce3d0201",
        "unlock": "07" * 32,
        "inner": "0102030405060708" * 8,
    },
    "a permit, a name with an accent": {
        "installation": "Escribanía «Uno»",
        "person": B,
        "credential": C,
        "keyVersion": 2,
        "spki": "00",
        "unlock": "ff" * 32,
        "inner": "55" * 32,
    },
}
STATEMENTS: Final = {
    "a host's key": {
        "installation": "rubrica",
        "host": "firma-a.example",
        "epoch": 2965704,
        "public": "09" * 32,
    },
    "a host's key of a minute": {
        "installation": "rubrica",
        "host": "firma-a.example",
        "epoch": 29657040,
        "public": "09" * 32,
    },
}
HOST_STATEMENTS: Final[Cases] = {
    "a host's key of a minute": {
        "installation": "rubrica",
        "host": "firma-a.example",
        "hostKey": "0a" * 32,
        "epoch": 29657040,
        "public": "09" * 32,
        "identity": "ab" * 32,
    },
    "of an installation with an accent": {
        "installation": "Rúbrica de San José",
        "host": "b",
        "hostKey": "00" * 31 + "01",
        "epoch": 10000000,
        "public": "ff" * 32,
        "identity": "0" * 64,
    },
}
HOST_LISTS: Final[Cases] = {
    "two hosts": {"hosts": {"firma-b": "0b" * 32, "firma-a.example": "0a" * 32}},
    "none": {"hosts": {}},
}
EPOCHS: Final[Cases] = {
    "its first moment": {"at": "2026-05-25T12:00:00+00:00"},
    "its last one, in another zone": {"at": "2026-05-25T09:09:59.999999-03:00"},
    "a minute's first moment": {"at": "2026-05-25T12:00:00+00:00", "format": 2},
    "its last one": {"at": "2026-05-25T12:00:59.999999+00:00", "format": 2},
}
COMMANDS: Final[Cases] = {
    "all defaults": {"request": 7, "parameters": PARAMETERS},
    "every field": {"request": 9007199254740991, "parameters": EVERYTHING},
    "a place": {"request": 8, "parameters": {**PARAMETERS, "x": 5, "y": 6}},
}
BATCHES: Final[Cases] = {
    "three, one of them twice": {
        "person": B,
        "requests": [9, 3, 9],
        "parameters": PARAMETERS,
    },
    "one with every field": {
        "person": B,
        "requests": [1],
        "parameters": EVERYTHING,
    },
    "two, one with a look of its own": {
        "person": B,
        "requests": [9, 3],
        "parameters": PARAMETERS,
        "fingerprints": {"9": "ab" * 32},
    },
}
PRESETS: Final[Cases] = {
    "a place that is fixed": {"page": 3, "x": 40, "y": 60, "fijo": True},
    "every field": EVERYTHING,
    "nothing": {},
    "the stamp of when it was made": {
        "page": 2,
        "defaults": {"design": "card", "qr": True},
    },
}
STAMPS: Final[Cases] = {
    "plain": {},
    "everything": DETAILS,
    "a QR code": {"qr": "https://a"},
    "a card": {"qr": "https://a/0123", "design": "card"},
}
INITS: Final[Cases] = {
    "all that a host may send": {
        "init": {
            "nonce": "n",
            "idemKey": "pedido-1",
            "sessionToken": "A" * 43,
            "userData": {
                "cuil": "20-26756539-3",
                "dni": "26756539",
                "email": "ada@correo.example",
                "phone": "1155550000",
                "fullName": "Ada",
            },
        }
    },
    "what it must": {
        "init": {
            "nonce": "n",
            "sessionToken": "A" * 43,
            "userData": {"dni": "26756539", "email": "ada@correo.example"},
        }
    },
}


def _audited(event: str, actor: str, at: str, **more: Any) -> dict[str, Any]:
    plain = {"integrator": None, "request": None, "activation": None, "attempt": None}
    return {
        "event": event,
        "actor": actor,
        "at": at,
        **plain,
        "detail": {},
        **more,
    }


CHAINS: Final = {
    "a signature": {
        "writer": D,
        "events": [
            _audited(
                "activation.created",
                f"person:{B}",
                NOON,
                integrator=A,
                request=7,
                activation=C,
                detail={
                    "credential": C,
                    "documentSha256": DOCUMENT,
                    "paramsSha256": "cd" * 32,
                    "factors": ["pwd", "otp", "sign-pwd"],
                },
            ),
            _audited("login.password_wrong", "anonymous", ODD),
            _audited(
                "request.signed",
                "worker:signing/a/1",
                SOON,
                integrator=A,
                request=9007199254740991,
                activation=C,
                attempt=2,
                detail={
                    "b": 1,
                    "a": {"before": None, "after": 'Ñandú €\u2028\n"'},
                    "list": [True, False, 0, -5, 1.5, 1e21],
                },
            ),
        ],
    },
    "a use of a key": {
        "writer": D,
        "events": [
            _audited(
                kind,
                "worker:signing/a/1",
                at,
                request=7,
                activation=C,
                attempt=1,
                detail={
                    "digest": "ef" * 32,
                    "item": 0,
                    "serial": "7c01",
                    "spkiSha256": "ab" * 32,
                    **more,
                },
            )
            for kind, at, more in (
                ("key.intended", NOON, {"documentSha256": DOCUMENT}),
                ("key.used", SOON, {}),
            )
        ],
    },
}
RING: Final = {"present": 1, "keys": {"1": "64" * 32}}
ROTATED: Final = {"present": 3, "keys": {"1": "64" * 32, "3": "65" * 32}}
SEALED: Final[Cases] = {
    f"{table}.{column}": {
        "ring": RING,
        "secret": b"ada@correo.example".hex(),
        "place": {"table": table, "row": row, "column": column},
    }
    for table, row, column in [
        ("person", B, "email_sealed"),
        ("login_secret", B, "totp_sealed"),
        ("enrolment", A, "totp_sealed"),
        ("console_user", A, "totp_sealed"),
        ("console_user", A, "totp_offered"),
        ("jwt_key", "kid_-1", "private_sealed"),
        ("document_key", A, "key_sealed"),
        ("webhook_endpoint", A, "secret_sealed"),
        ("webhook_endpoint", A, "former_secret_sealed"),
    ]
} | {
    "a later version of the key": {
        "ring": ROTATED,
        "secret": "",
        "place": {"table": "person", "row": B, "column": "email_sealed"},
    },
}
LOOKUPS: Final[Cases] = {
    name: {
        "ring": ring,
        "environment": environment,
        "email": " Ada@Correo.example",
        "cuil": "20267565393",
        "token": "A" * 43,
        "person": B,
        "address": "2001:db8::/64",
        "administrator": "marta",
        "apiKey": f"rbk_test_{'0' * 12}_{'a' * 49}",
        "purpose": "download-link",
        "value": "A" * 43,
    }
    for name, ring, environment in [
        ("the first key", RING, "PREPROD"),
        ("a later version", ROTATED, "PROD"),
    ]
}
RINGS: Final[Cases] = {
    "one version": RING,
    "several, one to come": {
        "present": 2,
        "keys": {"1": "01" * 32, "2": "02" * 32, "7": "07" * 32},
    },
}
SIGNING_PASSWORDS: Final[Cases] = {
    "a password": {
        "pepper": {"present": 1, "keys": {"1": "70" * 32}},
        "password": "una clave de firma",
        "credentials": [C, D],
    },
    "another pepper, composed letters": {
        "pepper": {"present": 2, "keys": {"1": "70" * 32, "2": "71" * 32}},
        "password": "contrasen\u0303a ñ €",
        "credentials": [C],
    },
}
WRONG_PASSWORDS: Final[Cases] = {
    f"typed by {who}": {
        "pepper": "70" * 32,
        "salt": "5b" * 16,
        "argon2": {"t": 2, "m": 19456, "p": 1, "v": 19},
        "password": "no es la clave",
        "person": person,
    }
    for who, person in (("one person", B), ("another", C))
}
CLEARINGS: Final[Cases] = {
    name: {
        "ring": ring,
        "person": B,
        "salt": "5b" * 16,
        "at": "2026-11-30T12:00:00.000001+00:00",
    }
    for name, ring in (("the first key", RING), ("a later version", ROTATED))
}
LOGIN_PASSWORDS: Final[Cases] = {
    "a login password": {"password": "una clave de ingreso"},
    "a revocation PIN": {"password": "ABCD2345EFGH", "typed": "abcd-2345-efgh"},
}
SEEDS: Final = {
    "an enrolment": {
        "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
        "opening": "A" * 22,
        "name": "ada@correo.example",
        "issuer": "Rúbrica",
    },
}
API_KEYS: Final = {
    "of a trial": {"environment": "PREPROD"},
    "of production": {"environment": "PROD"},
}
FILES: Final[Cases] = {
    "nothing": {"integrator": A, "key": "6b" * 32, "content": ""},
    "a short one": {
        "integrator": A,
        "key": "6b" * 32,
        "content": b"%PDF-1.7\n%fake\n%%EOF\n".hex(),
    },
    "two pieces": {
        "integrator": B,
        "key": "6c" * 32,
        "content": "0123456789abcdef",
        "times": 200_000,
    },
}
DOWNLOADS: Final[Cases] = {
    "a contract": {"name": "Señal «uno».pdf"},
    "signed before": {"name": "contrato-firmado.PDF"},
}
SIGNING: Final[dict[str, Any]] = {
    "permitted": 2,
    "new_locked": True,
    "empty": [
        {
            "name": "Firmas.Director",
            "page": 1,
            "rect": [10.0, 20.5, 200.0, 80.0],
            "locked": False,
            "closes": True,
            "needs": ["reason"],
            "digests": ["sha384"],
            "certifies": 1,
        },
        {
            "name": "sin lugar",
            "page": None,
            "rect": None,
            "locked": True,
            "closes": False,
            "needs": [],
            "digests": [],
            "certifies": None,
        },
    ],
    "signed": ["Firma-1"],
}
PLAIN_SIGNING: Final[dict[str, Any]] = {
    "permitted": None,
    "new_locked": False,
    "empty": [],
    "signed": [],
}
LOCKING: Final[dict[str, Any]] = {
    **PLAIN_SIGNING,
    "empty": [{**SIGNING["empty"][0], "permits": 1, "locks": True}],
}
INSPECTIONS: Final[Cases] = {
    "a field that locks": {
        "size": 1000,
        "pages": [[0, 0, 595.28, 841.89, 0, 1.0]],
        "findings": [],
        "signatures": 0,
        "docmdp": None,
        "marks": [],
        "signing": LOCKING,
    },
    "one page": {
        "size": 1000,
        "pages": [[0, 0, 595.28, 841.89, 0, 1.0]],
        "findings": [],
        "signatures": 0,
        "docmdp": None,
        "marks": [],
        "signing": PLAIN_SIGNING,
    },
    "everything": {
        "size": 52428800,
        "pages": [
            [0, 0, 595.28, 841.89, 0, 1.0],
            [0, 0, 595.28, 841.89, 0, 1.0],
            [-10, 5, 300.5, 400.25, 270, 2.5],
        ],
        "findings": ["javascript"],
        "signatures": 2,
        "docmdp": 3,
        "marks": [[1, [10.0, 10.0, 50.0, 50.0]], [3, [1.5, 2.5, 3.5, 4.5]]],
        "signing": SIGNING,
    },
}
CONSENT_SIGNER: Final[dict[str, Any]] = {
    "name": "Núñez, Ana María",
    "cuil": "20055361682",
    "locale": "es",
    "certificate": "3003020101",
    "chain": ["3003020102", "3003020103"],
}
PROFILE: Final[dict[str, Any]] = {
    "level": "B-T",
    "timestampPolicy": "preferred",
    "digest": "sha256",
    "tsa": ["internal"],
}
CODE: Final = "0123456789ABCDEFGHJKMNPQRS"
CONSENTS: Final[Cases] = {
    "one plain document": _activation(
        _item(
            7,
            PARAMETERS,
            code=CODE,
            inspection=INSPECTIONS["one page"],
            profile=PROFILE,
        ),
        signer=CONSENT_SIGNER,
    ),
    "every field of a command": _activation(
        _item(
            9007199254740991,
            EVERYTHING,
            stamp=DETAILS,
            code=CODE,
            inspection=INSPECTIONS["everything"],
            profile={
                "level": "B-LTA",
                "timestampPolicy": "required",
                "digest": "sha512",
                "tsa": ["ajena", "internal"],
            },
        ),
        signer={**CONSENT_SIGNER, "locale": "en"},
        keyVersion=12,
    ),
    "several documents, no issuers": _activation(
        _item(
            3,
            PARAMETERS,
            code=CODE,
            inspection=INSPECTIONS["a field that locks"],
            profile=PROFILE,
        ),
        _item(
            1,
            {**PARAMETERS, "campo": "a.b"},
            stamp={"qr": "https://a"},
            code=None,
            inspection=INSPECTIONS["one page"],
            profile={**PROFILE, "level": "B-B"},
        ),
        signer={**CONSENT_SIGNER, "chain": []},
        factors=["hwk", "sign-pwd"],
        created="2026-12-31T23:59:59.999999+00:00",
        claimBy="2027-01-01T00:00:59.999999+00:00",
    ),
}
COLUMNS: Final[Cases] = {
    "values": {
        "json": {"ñ": [1, None, "€\u2028"], "a": {"z": True, "b": 1.5}},
        "instant": ODD,
        "parts": ["01", "", "ff" * 300],
        "share": "integrador uno",
        "number": 3,
        "mark": "0a1b2c3d",
    },
    "nothing much": {
        "json": [],
        "instant": NOON,
        "parts": [],
        "share": "",
        "number": -1,
        "mark": "",
    },
}
QUESTIONS: Final[Cases] = {
    "all that may be asked": {
        "imprint": "ab" * 64,
        "digest": "sha512",
        "nonce": 2**70 + 1,
        "certificates": False,
        "null": True,
        "until": ODD,
    },
    "the least": {
        "imprint": "cd" * 32,
        "digest": "sha256",
        "nonce": None,
        "certificates": True,
        "null": False,
        "until": NOON,
    },
}
CURSORS: Final[Cases] = {"a row": {"at": ODD, "id": A, "writer": D, "n": 12}}
BACKUPS: Final[Cases] = {
    "an installation's": {
        "mark": A,
        "at": "2026-05-25T12:00:07+00:00",
        "key": "64" * 32,
        "members": [["about.json", 2], ["documents/a.pdf", 1000000]],
    },
}
REPORT: Final = {
    "field": "Firma-1",
    "signer": "Ada Núñez",
    "signer_serial": "CUIL 20267565393",
    "signed_at": "2026-05-25T09:00:00-03:00",
    "answers": {
        "integrity": ["yes", "", ""],
        "identity": ["yes", "", ""],
        "trust": ["unchecked", "NO_CERTIFICATE_CHAIN_FOUND", "not trusted here"],
        "revocation": ["yes", "", ""],
        "time": ["yes", "", ""],
        "coverage": ["yes", "", ""],
        "changes": ["no", "CHANGED", "page 2 was changed"],
    },
    "docmdp": 2,
    "level": "B-LTA",
    "timestamp": "2026-05-25T09:00:01-03:00",
    "tsa": "TSA",
    "void": "",
    "follows": 1234,
    "certificates": ["ab" * 32, "cd" * 32],
    "serial": "1f",
}
LAYOUT: Final = {
    "name": "Ada Núñez",
    "cuil": "20267565393",
    "at": NOON,
    "locale": "es",
    "pages": [[0, 0, 595.28, 841.89, 0, 1.0]],
    "parameters": {**PARAMETERS, "x": 30, "y": 40},
    "details": {"qr": "https://firma.example/verificar/0"},
}
MESSAGES: Final[Cases] = {
    "an inspection": {"kind": "inspection", "value": INSPECTIONS["everything"]},
    "damage": {"kind": "damage", "value": ["streams", "surroundings"]},
    "a refusal": {
        "kind": "refusal",
        "value": {
            "code": "PAGE_OUT_OF_RANGE",
            "reason": "as found",
            "params": {"page": 3, "pages": 2},
        },
    },
    "a report": {
        "kind": "report",
        "value": {
            "signatures": [REPORT],
            "filled": ["Cliente", "", "Ada"],
            "ending": ["yes", "", ""],
            "covered": "no",
            "pages": [1, 2],
            "unproven": ["TSA ajena"],
        },
    },
    "a report with a field's alternate name": {
        "kind": "report",
        "value": {
            "signatures": [
                {**REPORT, "alternate": f"https://f.example/verificar/{'0' * 26}"}
            ],
            "filled": ["Cliente", "", "Ada"],
            "ending": ["yes", "", ""],
            "covered": "no",
            "pages": [1, 2],
            "unproven": [],
        },
    },
    "revoked TSAs": {
        "kind": "revoked",
        "value": [["ab" * 32, "2026-05-25T12:00:00+00:00", "key_compromise"]],
    },
    "a layout": {"kind": "layout", "value": LAYOUT},
    "a text that was found": {
        "kind": "search",
        "value": {"found": [2, 100.5, 200, 180.25, 214], "whole": True},
    },
    "a text that was not": {"kind": "search", "value": {"found": None, "whole": False}},
    "a picture": {
        "kind": "picture",
        "value": {"logo": ["cd" * 32, 2, 1], "deflated": "789c0300000000"},
    },
}
CALLERS: Final[Cases] = {
    "an integrator's inspection": {"kind": "examine", "share": "0123456789abcdef"},
    "the installation's page": {"kind": "draw", "share": ""},
}
PROCESSES: Final[Cases] = {
    "a signing worker": {
        "role": "signing",
        "number": 1,
        "token": 1,
        "ns": 123456789012345,
    },
}
