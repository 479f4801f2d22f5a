"""The parser of a command: a word that it does not know is told in one line, with the nearest."""

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from ragforge.errors import UsageError, did_you_mean

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Parser(argparse.ArgumentParser):
    """One that raises a `UsageError` of one line where others print the usage and end the program.

    No option may be shortened: one that is added later must not change what a script means.
    """

    def __init__(
        self, prog: str | None = None, description: str | None = None, *, add_help: bool = True
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            add_help=add_help,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the words, and refuse those that are not known.

        Raises:
            UsageError: A word cannot be taken.
        """
        words = [] if args is None else list(args)
        # Before anything that is required is missed: a misspelt option is the reason for that.
        self._refuse_unknown_options(words)
        parsed, extras = super().parse_known_args(words, namespace)
        if extras:
            self.error(f"unexpected argument {extras[0]!r}")
        return parsed, extras

    def error(self, message: str) -> NoReturn:
        """Refuse the words.

        Raises:
            UsageError: Always.
        """
        name = self.prog.removeprefix("ragforge ")
        plain = message.removeprefix("argument ")
        raise UsageError(f"{name}: {plain}; see `{self.prog} --help`")

    def _refuse_unknown_options(self, words: Sequence[str]) -> None:
        for word in words:
            # Behind an action stand its own options, which its own parser knows.
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return
            name = word.partition("=")[0]
            if self._is_unknown_option(name):
                self.error(f"no option {name}{did_you_mean(name, self._option_string_actions)}")

    def _is_unknown_option(self, name: str) -> bool:
        if len(name) < 2 or name[0] != "-" or " " in name or _NUMBER.fullmatch(name):
            return False
        known = self._option_string_actions
        return name not in known and (name[1] == "-" or name[:2] not in known)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices: Iterable[object] | None = action.choices
        if choices is None or value in choices:
            return
        there = [str(choice) for choice in choices]
        near = did_you_mean(str(value), there)
        raise argparse.ArgumentError(
            action, f"expected {', '.join(there[:-1])} or {there[-1]}, got {value!r}{near}"
        )
