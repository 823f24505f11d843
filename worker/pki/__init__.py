"""The internal certification authority: certificates, CRLs and OCSP answers."""
