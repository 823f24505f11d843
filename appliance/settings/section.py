"""What each table of the file is made of, and the error of a file that is wrong."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class SettingsError(Exception):
    """The settings file cannot be used; the text names file, key and remedy."""


class CommandError(SettingsError):
    """A command's options do not fit each other; the text says what to type."""


class Section(BaseModel):
    """A table of the file: frozen, and no key that is not listed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Seconds = Annotated[float, Field(gt=0, le=86400)]
