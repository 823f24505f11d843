"""What `rubrica hsm check` found, as a table that a person can read."""

from dataclasses import dataclass, field
from enum import StrEnum


class Mark(StrEnum):
    """How a thing that was looked at is."""

    OK = "ok"
    WEAK = "weak"
    """It works, and is worth knowing before one relies on it."""
    BAD = "BAD"
    """The appliance must not work with this HSM."""


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One thing that was looked at."""

    name: str
    mark: Mark
    detail: str


@dataclass(slots=True)
class CheckReport:
    """All that was looked at, in order."""

    lines: list[CheckLine] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether the appliance can work with this HSM."""
        return not self.named(Mark.BAD)

    def named(self, mark: Mark) -> list[str]:
        """Names of the lines with a mark, in order."""
        return [line.name for line in self.lines if line.mark is mark]

    def add(self, name: str, detail: str, mark: Mark = Mark.OK) -> None:
        """Add a line."""
        self.lines.append(CheckLine(name, mark, detail))

    def table(self) -> str:
        """The lines and the verdict, for a terminal."""
        marks = max(len(mark) for mark in Mark)
        names = max(len(line.name) for line in self.lines)
        rows = [
            f"{line.mark:<{marks}}  {line.name:<{names}}  {line.detail}"
            for line in self.lines
        ]
        return "\n".join([*rows, "", self._verdict()])

    def _verdict(self) -> str:
        bad, weak = self.named(Mark.BAD), self.named(Mark.WEAK)
        if bad:
            return f"Not ready: {len(bad)} BAD ({', '.join(bad)})."
        if weak:
            return f"This HSM is ready; mind what is weak ({', '.join(weak)})."
        return "This HSM is ready."
