"""The reader of command lines: what is wrong is said of the command that was typed."""

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn, cast

EX_USAGE: Final = 2
"""Exit status of a command that is wrong; argparse's own."""
_PARSER: Final = "command_parser"
"""In what was read: the parser of the command."""


class CommandParser(argparse.ArgumentParser):
    """Refuses what a command does not take with that command's usage, in short.

    Args:
        *args: of `ArgumentParser`.
        **options: of `ArgumentParser`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_defaults(**{_PARSER: self})

    def parse_args(  # type: ignore[override]  # the overloads of one signature
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> argparse.Namespace:
        """Read a command line; end the program for one that is wrong."""
        self._refuse_before_command(sys.argv[1:] if args is None else args)
        read, rest = self.parse_known_args(args, namespace)
        command = cast("CommandParser", getattr(read, _PARSER))
        if rest:
            command.error(self._unknown(rest, command))
        delattr(read, _PARSER)
        return cast("argparse.Namespace", read)

    def _refuse_before_command(self, words: Sequence[str]) -> None:
        """Refuse an unknown option before the command, for which its value passes."""
        rest = iter(words)
        for word in rest:
            option = word.partition("=")[0]
            if option in {"-", "--"} or not option.startswith("-"):
                return
            if (action := self._option_string_actions.get(option)) is None:
                self.error(
                    f"it does not take {option}{did_you_mean(option, self.options)}"
                )
            if action.nargs is None and word == option:
                next(rest, None)

    def _unknown(self, rest: Sequence[str], command: "CommandParser") -> str:
        """Say what a command does not take, and what may be meant."""
        unknown = next((word for word in rest if word.startswith("-")), rest[0])
        option = unknown.partition("=")[0]
        # Without its value, which may be a secret.
        told = f"it does not take {option}"
        if option in self.options and option not in command.options:
            return f"{option} goes before the command: {self.prog} {option} …"
        return told + did_you_mean(option, command.options)

    @property
    def options(self) -> list[str]:
        """All options of the command."""
        return [*self._option_string_actions]

    @property
    def has_commands(self) -> bool:
        """True for a parser of several commands."""
        return self._subparsers is not None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        is_command = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 (argparse names it no better)
        if is_command and value not in (action.choices or ()):
            told = f"there is no command {value!r}"
            told += did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(None, told)
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """End the program: what is wrong, and how the command is typed."""
        usage = self.format_usage()
        if self.has_commands:
            usage = f"usage: {self.prog} COMMAND …\n"
        sys.stderr.write(
            f"{self.prog}: {message}\n{usage}{self.prog} --help tells more\n"
        )
        sys.exit(EX_USAGE)


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Name the word that somebody may have meant; empty if none is alike.

    Args:
        typed: as typed.
        known: all words that would have been right.
    """
    near = difflib.get_close_matches(typed, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
