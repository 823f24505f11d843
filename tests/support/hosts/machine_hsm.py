"""A key of ours that is not in the HSM of a booted machine any more, and is again.

    machine.run(TAKE_KEY)
    machine.run(BRING_KEY)

The HSM is SoftHSM, whose files tell nobody which key they are: the key is destroyed by
PKCS#11, and the files of before come back.
"""

from typing import Final

KEY: Final = "rubrica-ocsp"
"""Of the responder that answers for the CA; its CKA_ID is of its first generation."""
_TOKENS: Final = "/var/lib/rubrica/tokens"
_WHOLE: Final = "/root/tokens-whole"
_PYTHON: Final = (
    f"SOFTHSM2_CONF={_TOKENS}/softhsm2.conf /opt/rubrica/.venv/bin/python -"
)
_DESTROY: Final = f"""
import pkcs11
pin = open("/etc/rubrica/hsm/pki.pin").read().strip()
token = pkcs11.lib("/usr/lib/softhsm/libsofthsm2.so").get_token(token_label="pki")
with token.open(rw=True, user_pin=pin) as session:
    pair = list(session.get_objects({{pkcs11.Attribute.ID: b"{KEY}-1"}}))
    assert len(pair) == 2, pair
    for each in pair:
        each.destroy()
"""
TAKE_KEY: Final = f"""
cp -a {_TOKENS} {_WHOLE}
{_PYTHON} <<'END'{_DESTROY}END
"""
BRING_KEY: Final = f"cp -a {_WHOLE}/. {_TOKENS}/; rm -r {_WHOLE}"
