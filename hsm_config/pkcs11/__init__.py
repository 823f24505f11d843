"""The PKCS#11 binding at run time: sessions, keys, errors."""
