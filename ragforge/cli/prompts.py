"""List the prompts, or show one. A folder given with --prompts-dir replaces shipped ones."""

import argparse

from ragforge.cli.flags import add_common, settings_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    listing = actions.add_parser("list", help="names, versions and digests")
    add_common(listing, "prompts")
    show = actions.add_parser("show", help="one prompt, as it is used")
    show.add_argument("name", metavar="NAME")
    add_common(show, "prompts")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.prompts import load_prompt, prompt_names
    from ragforge.report.table import render_table

    folder = settings_of(arguments).prompts.prompts_dir
    if arguments.action == "show":
        prompt = load_prompt(arguments.name, folder)
        print(f"# {prompt.name}, version {prompt.version}, sha256 {prompt.sha256}")
        print(f"# schema of the reply: {prompt.schema}\n")
        print(f"[system]\n{prompt.system.strip()}\n\n[user]\n{prompt.user.strip()}")
        return 0
    found = [load_prompt(name, folder) for name in prompt_names(folder)]
    rows = [[item.name, str(item.version), item.schema, item.sha256[:12]] for item in found]
    print(render_table(["prompt", "version", "schema", "sha256"], rows))
    return 0
