"""What an installation is, and the secret keys that it keeps."""

from enum import StrEnum


class Environment(StrEnum):
    """Which of the two kinds an installation is (spec "Environments")."""

    PREPROD = "PREPROD"
    PROD = "PROD"


class SecretName(StrEnum):
    """The secret keys of an installation that are kept in files."""

    DATA = "data"
    DOCUMENT = "document"
    LOOKUP = "lookup"
    PEPPER = "pepper"
