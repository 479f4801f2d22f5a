"""The parser of a command: help that fits a screen, and one line about a word it does not know.

`--help` shows the common options and the first words of each, `--help-all` everything.
"""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from ragforge.api.colour import BOLD, coloured
from ragforge.deferred import pattern, shutil
from ragforge.errors import UsageError, did_you_mean

SCREEN_LINES: Final = 40
"""Lines of a short help where nobody says how many a screen has."""
_FEWEST_OPTIONS: Final = 4
_WIDEST: Final = 100
_WIDTH_TRIED: Final = 78
_NUMBER: Final = pattern(r"-\d+|-\d*\.\d+")
_EXAMPLES: Final = "\n\nExamples:\n"
_SHORT_EXAMPLES: Final = 4
_NOTES: Final = pattern(r"( Default: .*?\.)?( \[RAGFORGE_\w+\])?$", re.DOTALL)
_FIRST_WORDS: Final = pattern(r"(.{12,}?)(;|\.|:? \(default)(\s|:|$)", re.DOTALL)
_LONG_DEFAULT: Final = 30


class Parser(argparse.ArgumentParser):
    """One that raises a `UsageError` of one line where others print the usage and end the program.

    No option may be shortened: one that is added later must not change what a script means.

    Args:
        prog: The words that call it.
        description: What it does; the first paragraph and the examples are in the short help.
        common: Options of the short help, in its order; all but settings where none is named.
        add_help: Whether it takes `--help` and `--help-all`.
        color: Given by argparse from Python 3.14 on; colours are those of `api.colour`.
    """

    def __init__(
        self,
        prog: str | None = None,
        description: str | None = None,
        *,
        common: Sequence[str] = (),
        add_help: bool = True,
        color: bool = False,
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            add_help=False,
            allow_abbrev=False,
            # What is added is tried on one; without a width it loads shutil for the terminal's.
            formatter_class=partial(argparse.HelpFormatter, width=_WIDTH_TRIED),
        )
        self.common = common
        self._words: list[str] = []
        self.register("action", None, _Store)
        if add_help:
            self.add_argument("-h", "--help", action=_Help, help="the common options")
            self.add_argument("--help-all", action=_Help, help="all options, and how it works")

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
        self._words = words
        # Before anything that is required is missed: a misspelt option is the reason for that.
        self._refuse_unknown_options(words)
        parsed, extras = super().parse_known_args(words, namespace)
        if extras:
            self.error(f"unexpected argument {extras[0]!r}{self._second_word(extras[0])}")
        return parsed, extras

    def _second_word(self, given: str) -> str:
        """Return which word may be meant that makes a command of its own with this one."""
        from ragforge.cli import TWO_WORDS

        name = self.prog.removeprefix("ragforge ")
        return did_you_mean(given, [second for first, second in TWO_WORDS if first == name])

    def error(self, message: str) -> NoReturn:
        """Refuse the words.

        Raises:
            UsageError: Always.
        """
        name = self.prog.removeprefix("ragforge ")
        plain = message.removeprefix("argument ")
        if "--dataset" in self._option_string_actions and "--dataset" not in self._words:
            plain += meant_as_dataset(self._words)
        raise UsageError(f"{name}: {plain}; see `{self.prog} --help`")

    def format_help(self) -> str:
        """Return the help that fits a screen: as many examples and options as have room."""
        shown = self.format_help_all()
        common, n_examples = self._common(), _SHORT_EXAMPLES
        is_short = False
        while not _fits_screen(shown):
            if is_short and n_examples > 1:
                n_examples -= 1
            elif is_short and len(common) > _FEWEST_OPTIONS:
                common = common[:-1]
            elif is_short:
                break
            is_short = True
            shown = self._short_help(common, n_examples)
        return shown

    def _short_help(self, common: Collection[argparse.Action], n_examples: int) -> str:
        purpose, _, rest = _text_of(self).partition("\n\n")
        hidden = len(self._options()) - len({id(action) for action in common})
        more = f"`{self.prog} --help-all` shows"
        count = f"{hidden} more options" if hidden else ""
        how = "how it works" if rest else ""
        parts = [
            self._usage(),
            purpose,
            self._listed("options", common, _Brief),
            _examples_of(self, n_examples),
            f"{more} {' and '.join(filter(None, (count, how)))}." if count or how else "",
        ]
        return _paragraphs(parts)

    def format_help_all(self) -> str:
        """Return the help with everything."""
        common = self._common()
        is_part = len({id(action) for action in common}) < len(self._options())
        shown = {id(action) for action in common}
        groups = [
            self._listed(
                _title(group.title),
                [action for action in group._group_actions if id(action) not in shown],
                _Whole,
            )
            for group in self._action_groups
        ]
        parts = [
            self._usage(),
            _text_of(self),
            self._listed("common options" if is_part else "options", common, _Whole),
            *groups,
            _examples_of(self),
        ]
        return _paragraphs(parts)

    def _usage(self) -> str:
        operands = [action for action in self._actions if not action.option_strings]
        shown = _Whole(self.prog).operands(operands)
        words = ["usage:", self.prog, *shown, *(["[OPTION…]"] if self._options() else [])]
        return " ".join(words)

    def _options(self) -> list[argparse.Action]:
        """Return what can be listed: operands, too, but no help."""
        return [
            action
            for action in self._actions
            if action.help != argparse.SUPPRESS and not isinstance(action, _Help)
        ]

    def _common(self) -> list[argparse.Action]:
        if self.common:
            operands = [action for action in self._options() if not action.option_strings]
            return [*operands, *(self._option_string_actions[name] for name in self.common)]
        settings = {
            id(action)
            for group in self._action_groups
            if isinstance(group, SettingsGroup)
            for action in group._group_actions
        }
        return [action for action in self._options() if id(action) not in settings]

    def _listed(
        self,
        title: str,
        actions: Collection[argparse.Action],
        formatter_class: "type[_Whole]",
    ) -> str:
        actions = [action for action in actions if not isinstance(action, _Help)]
        if not actions:
            return ""
        formatter = formatter_class(self.prog)
        formatter.start_section(None)
        formatter.add_arguments(actions)
        formatter.end_section()
        body = formatter.format_help().strip("\n")
        return f"{coloured(f'{title}:', BOLD, sys.stdout)}\n{body}"

    def _refuse_unknown_options(self, words: Sequence[str]) -> None:
        for word in words:
            # Behind an action stand its own options, which its own parser knows.
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return
            name = word.partition("=")[0]
            if self._is_unknown_option(name):
                near = did_you_mean(name, self._option_string_actions)
                self.error(f"no option {name}{self._operand(name) or near}")

    def _operand(self, option: str) -> str:
        """Return that what is given as an option is a word without one; "" where none is meant."""
        for action in self._actions:
            if not action.option_strings and action.dest == option.lstrip("-").replace("-", "_"):
                shown = _Whole(self.prog).operands([action])[0]
                return f"; what it names stands without an option: {self.prog} {shown}"
        return ""

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
        raise argparse.ArgumentError(action, f"expected {_either(there)}, got {value!r}{near}")


class SettingsGroup(argparse._ArgumentGroup):
    """Options that are settings, too: not in the short help unless they are named for it."""


def add_settings_group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Add a group of options that are settings."""
    group = SettingsGroup(parser, title)
    parser._action_groups.append(group)
    return group


class _Store(argparse.Action):
    """Takes a value as argparse does, but one file or folder alone.

    The last of several would stand for those that nobody looked at.
    """

    takes_one = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep it."""
        is_file = self.type is Path and self.option_strings and self.nargs is None
        before = getattr(namespace, self.dest)
        if (self.takes_one or is_file) and before not in (None, self.default, values):
            raise UsageError(
                f"{option_string} {values}: comes beside {option_string} {before}; the command "
                "takes one, so call it once for each"
            )
        setattr(namespace, self.dest, values)


class Once(_Store):
    """Takes one value alone, whatever it is."""

    takes_one = True


class _Help(argparse.Action):
    """Prints a help, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=None, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Print it."""
        assert isinstance(parser, Parser)
        print(
            parser.format_help_all() if option_string == "--help-all" else parser.format_help(),
            end="",
        )
        parser.exit()


class _Whole(argparse.HelpFormatter):
    """Formats options with all that is said of them."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=width())
        # From Python 3.14 on it has colours of its own.
        if hasattr(self, "_set_color"):
            self._set_color(False)

    def operands(self, actions: Iterable[argparse.Action]) -> list[str]:
        """Return the operands as the usage shows them."""
        return [self._format_args(action, action.dest) for action in actions]

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = ", ".join(action.option_strings)
        if action.nargs == 0:
            return names
        return f"{names} {self._format_args(action, action.dest.upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        metavar = action.metavar
        if metavar is None and action.choices is not None:
            metavar = "|".join(str(choice) for choice in action.choices)
        shown = metavar if isinstance(metavar, str) else default_metavar
        forms = {"?": f"[{shown}]", "+": f"{shown}…", "*": f"[{shown}…]"}
        if action.nargs == argparse.PARSER:
            return f"{shown} …"
        return forms.get(str(action.nargs), shown)


class _Brief(_Whole):
    """Formats options with the first words of what is said of them."""

    def _expand_help(self, action: argparse.Action) -> str:
        return brief(super()._expand_help(action))


def brief(text: str) -> str:
    """Return the first words of a help, with a short default, and without the variable's name."""
    notes = _NOTES.search(text)
    assert notes is not None
    said, default = text[: notes.start()], notes[1] or ""
    first = _FIRST_WORDS.match(said)
    words = first[1] if first is not None else said.removesuffix(".")
    if words[1:2].islower():
        words = words[:1].lower() + words[1:]
    value = default.removeprefix(" Default: ").removesuffix(".")
    return f"{words} (default: {value})" if value and len(value) < _LONG_DEFAULT else words


def _either(words: Sequence[str]) -> str:
    """Return words as a sentence lists those of which one is meant."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def values_of(action: argparse.Action) -> tuple[str, ...]:
    """Return the words of which an option takes one; none where it takes other values."""
    if action.choices is not None:
        return tuple(str(choice) for choice in action.choices)
    shown = action.metavar if isinstance(action.metavar, str) else ""
    words = tuple(shown.split("|")) if "|" in shown else ()
    return tuple(word for word in words if not word.isupper())


def count(text: str) -> int:
    """Return the number from 1 that an argument is."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text}")
    return number


def width() -> int:
    """Return how wide help and tables may be: the terminal, at most 100 columns, 80 without one."""
    if not os.environ.get("COLUMNS") and not sys.stdout.isatty():
        return 80
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


def _fits_screen(text: str) -> bool:
    """Whether a text leaves room for the prompt below it, also where its lines are broken."""
    if not sys.stdout.isatty():
        return text.count("\n") <= SCREEN_LINES
    columns, lines = shutil.get_terminal_size()
    taken = sum(max(1, -(-len(line) // columns)) for line in text.splitlines())
    return taken < min(SCREEN_LINES + 1, lines)


def _text_of(parser: Parser) -> str:
    return (parser.description or "").partition(_EXAMPLES)[0].strip()


def _examples_of(parser: Parser, most: int = 99) -> str:
    _, _, examples = (parser.description or "").partition(_EXAMPLES)
    lines = examples.rstrip().splitlines()[:most]
    return "\n".join([coloured("examples:", BOLD, sys.stdout), *lines]) if lines else ""


def _title(title: str | None) -> str:
    return {"options": "other options", "positional arguments": "operands"}.get(
        title or "", title or ""
    )


def _paragraphs(parts: Iterable[str]) -> str:
    shown = "\n\n".join(part for part in parts if part)
    return f"{shown}\n"


def meant_as_dataset(words: Iterable[str]) -> str:
    """Return how to name a dataset, where one of the words leads to one; else nothing."""
    for word in words:
        if any(Path(word, *where, "manifest.json").is_file() for where in ((), ("current",))):
            return f"; {word} is a dataset: give it as --dataset {shlex.quote(word)}"
    return ""
