"""Print a script that lets a shell complete commands, options and their values.

The script is made of the options as they are now, and asks nothing when Tab is pressed. Put it
where the shell reads it at its start.

Examples:
  ragforge completion bash > ~/.local/share/bash-completion/completions/ragforge
  ragforge completion zsh > ~/.zfunc/_ragforge
  ragforge completion fish > ~/.config/fish/completions/ragforge.fish
"""

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

from ragforge.cli import COMMANDS, TWO_WORDS
from ragforge.cli.parser import Parser, brief, values_of
from ragforge.deferred import dataclass

_BASH: Final = """\
_ragforge() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words="" i=2 command="${{COMP_WORDS[1]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands} --help --version" -- "$cur"))
    return
  fi
  case "$command ${{COMP_WORDS[2]}}" in
    {pairs}) [ "$COMP_CWORD" -gt 2 ] && command="$command ${{COMP_WORDS[2]}}" ;;
  esac
  case "$command $prev" in
{values}
  esac
  if [ -z "$words" ]; then
    case "$command" in
{options}
    esac
    case "$cur" in
      -*) ;;
      *) [ "$COMP_CWORD" -eq 2 ] && words="$actions" || words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _ragforge ragforge
"""
_ZSH: Final = "#compdef ragforge\nautoload -U +X bashcompinit && bashcompinit\n"
# zsh reads the file at the first Tab, as the body of the function that is to answer it.
_ZSH_FIRST_TAB: Final = (
    '[[ "$funcstack[1]" = _ragforge ]] && _bash_complete -o default -F _ragforge\n'
)


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    values: tuple[str, ...]
    takes_value: bool
    text: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell reads it")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    options = dict(_each_command())
    if arguments.shell == "fish":
        print("\n".join(_fish(options)))
    elif arguments.shell == "zsh":
        print(_ZSH + _bash(options) + _ZSH_FIRST_TAB, end="")
    else:
        print(_bash(options), end="")
    return 0


def _each_command() -> Iterator[tuple[str, list[_Option]]]:
    """Yield each command, of one word or two, with its options."""
    for name in COMMANDS:
        module = import_module(f"ragforge.cli.{name.replace('import', 'import_')}")
        parser = Parser(prog=f"ragforge {name}")
        module.configure(parser)
        yield name, _options(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for second, sub in action.choices.items():
                    yield f"{name} {second}", _options(sub)
        for first, second in sorted(TWO_WORDS):
            if first == name:
                parser = Parser(prog=f"ragforge {first} {second}")
                getattr(module, f"configure_{second}")(parser)
                yield f"{name} {second}", _options(parser)


def _options(parser: argparse.ArgumentParser) -> list[_Option]:
    return [
        _Option(
            names=tuple(action.option_strings),
            values=values_of(action),
            takes_value=action.nargs != 0,
            text=brief((action.help or "").replace("%%", "%")),
        )
        for action in parser._actions
        if action.option_strings and action.help != argparse.SUPPRESS
    ]


def _bash(commands: dict[str, list[_Option]]) -> str:
    values, options = [], []
    for command, given in commands.items():
        names = " ".join(name for option in given for name in option.names)
        actions = " ".join(_seconds(command, commands))
        options.append(f'      "{command}") words="{names}" actions="{actions}" ;;')
        for option in given:
            if option.values:
                patterns = "|".join(f'"{command} {name}"' for name in option.names)
                values.append(f'    {patterns}) words="{" ".join(option.values)}" ;;')
    return _BASH.format(
        commands=" ".join(COMMANDS),
        pairs="|".join(f'"{command}"' for command in commands if " " in command),
        values="\n".join(values),
        options="\n".join(options),
    )


def _fish(commands: dict[str, list[_Option]]) -> Iterator[str]:
    first = "not __fish_seen_subcommand_from " + " ".join(COMMANDS)
    for name, what in COMMANDS.items():
        yield f"complete -c ragforge -f -n '{first}' -a {name} -d {_quoted(what)}"
    for command, options in commands.items():
        words = command.split()
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        for second in _seconds(command, commands):
            yield f"complete -c ragforge -n '{seen}' -a {second}"
        for option in options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = f" -x -a {_quoted(' '.join(option.values))}" if option.values else ""
            required = " -r" if option.takes_value and not option.values else ""
            yield (
                f"complete -c ragforge -n '{seen}' {names}{required}{value} "
                f"-d {_quoted(option.text)}"
            )


def _seconds(command: str, commands: Sequence[str] | dict[str, list[_Option]]) -> list[str]:
    """Return the second words of a command."""
    return [each.split()[1] for each in commands if each.startswith(f"{command} ")]


def _quoted(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
