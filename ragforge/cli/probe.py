"""Ask a retriever or a RAG system one question, and show what is understood of its reply.

The service is one of the settings ([retrievers.NAME], [systems.NAME]; see docs/services.md), or an
address. Shown are the request, the reply in short, and a table of the results or the answer with
its contexts. Secrets are not shown: ${VARIABLE} stands where one is sent, and one that the service
echoes is masked. Where a path is missing or matches nothing, paths are proposed that may be meant.
With --dataset, each result is told as the chunk that it is, or by where its text stands.

--set changes a field for this question: a path to try, a header, a body.

Exit codes: 0 understood; 3 a reply came that could not be read; 4 no good reply came.

Examples:
  ragforge probe docs "How long do I have to return it?" --config services.toml
  ragforge probe docs "How long?" --config services.toml --dataset my-set
  ragforge probe docs "How long?" --set results=data.items --set id=meta.key
  ragforge probe http://127.0.0.1:8000/search "How long?" --set 'body={"q": "{query}"}'
  ragforge probe http://127.0.0.1:8000/ask "How long?" --as system --json
"""

import argparse
from pathlib import Path

from ragforge.api.progress import Progress
from ragforge.cli.flags import add_common, add_json, run_async, settings_of
from ragforge.cli.next_step import after_probe
from ragforge.cli.output import dumps, show
from ragforge.errors import DataError, EndpointError

COMMON = ("--dataset", "--as", "--set", "-k", "--timeout-s", "--config", "--json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("service", metavar="NAME|URL", help="a service of the settings, or its URL")
    parser.add_argument("question", metavar="QUESTION", help="what to ask")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=("retriever", "system"),
        default="",
        help="what it is; the settings say it of a name, and a URL is a retriever unless told",
    )
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of its settings for this question, such as headers.X-Tenant=docs",
    )
    parser.add_argument(
        "--dataset",
        type=Path,
        metavar="DIR",
        help="a set: tell which of its chunks each result is, or where its text stands",
    )
    add_json(parser)
    add_common(parser, "retrieve", "model")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.pipeline.probing import probe_service
    from ragforge.report.probe import probe_json, render_probe

    dataset = None
    if arguments.dataset:
        from ragforge.files.set.opening import open_dataset

        dataset = open_dataset(arguments.dataset)
    probe = run_async(
        probe_service(
            arguments.service,
            arguments.question,
            settings_of(arguments),
            Progress(arguments.quiet),
            kind=arguments.kind,
            changes=arguments.changes,
            dataset=dataset,
        )
    )
    if arguments.json:
        print(dumps(probe_json(probe)))
    else:
        show(render_probe(probe))
        if probe.state == "understood" and not (probe.settings or probe.proposals):
            after_probe(arguments, probe.where)
    match probe.state:
        case "failed":
            return EndpointError.exit_code
        case "not understood":
            return DataError.exit_code
    return 0
