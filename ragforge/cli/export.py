"""Write a dataset in the form of other tools: TREC files, a BEIR folder, or one JSON file.

The accepted queries go out with the grade that counts for each chunk; what the form cannot hold is
told with counts.

Forms:
  trec   a folder: qrels.trec, queries.tsv, runs/NAME.trec, ragforge.json
  beir   a folder: corpus.jsonl, queries.jsonl, qrels/test.tsv (and qrels/dev.tsv), ragforge.json
         and, where labels name whole documents, chunks.jsonl
  json   a file: {"queries": [{id, query, relevant_doc_ids, graded_relevance}]}

Texts of runs that are no chunks of the set are kept apart, as pieces of another splitter: what such
a run is measured on goes to qrels/NAME.trec, to the folder texts/NAME/ of a BEIR folder, and to
graded_texts in the json form. Where a run is measured from such files, they are found by its name.

Where labels name whole documents, corpus.jsonl has these, beside the chunks if other labels name
chunks; `ragforge import` and `--chunks` read chunks.jsonl, so that chunks alone are searched, and
each counts as its document. The other forms need --chunks for that.

ragforge.json (in the json form the key "ragforge") says what grades alone do not: from which grade
on a chunk is relevant, what a chunk without a label is, which queries are labelled by documents,
and who graded; a folder texts/NAME/ has its own. `ragforge import` and `ragforge evaluate --qrels`
read queries, labels and this back; without it, grades count as people's, and those from 2 on as
relevant. Chunks have to be brought beside the trec and json forms; runs are measured as files.

Examples:
  ragforge export --dataset set/ --as beir --out set-beir/
  ragforge export --dataset set/ --as json --out queries.json
"""

import argparse
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.next_step import after_export
from ragforge.cli.output import print_result


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    parser.add_argument(
        "--as", required=True, dest="form", choices=("trec", "beir", "json"), help="the form"
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="PATH", help="the folder, or the file for json"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.outcomes import Exported
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.exporting import export

    result = export(open_dataset(arguments.dataset), arguments.form, arguments.out)
    if arguments.json:
        print_result(Exported(arguments.form, result.files, result.lost), as_json=True)
        return 0
    if result.lost:
        say(f"not in this form: {'; '.join(result.lost)}")
    for path in result.files:
        print(path)
    after_export(arguments, result.files)
    return 0
