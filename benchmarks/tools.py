"""How each tool is called: one small function per tool and kind of input.

Each returns the means by ragforge's names and computes the values of every query too. Tools are
imported inside the functions, so that a process holds no tool but the one it measures.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from data import CHUNK_ID, COLUMN_OF_IDS, COLUMN_OF_SCORES, QUERY_ID, RANKING, SCORE, Qrels, Run
from data import load_qrels as read_qrels

MEASURES: Final = ("nDCG@10", "P@5", "P@10", "R@5", "R@10", "R@100", "RR", "AP", "Success@10")
OTHER_CUTOFFS: Final = ("nDCG@5", "nDCG@20", "P@20", "R@20", "R@50", "Success@5")
"""What is asked of a run after `MEASURES`, to time re-scoring."""

Means = dict[str, float]
Names = tuple[str, ...]

_TREC_EVAL: Final = {
    "nDCG": "ndcg_cut",
    "P": "P",
    "R": "recall",
    "RR": "recip_rank",
    "AP": "map",
    "Success": "success",
}
_RANX: Final = {
    "nDCG": "ndcg",
    "P": "precision",
    "R": "recall",
    "RR": "mrr",
    "AP": "map",
    "Success": "hit_rate",
}


def trec_eval_name(measure: str, mark: str = "_") -> str:
    """Return the name of trec_eval and pytrec_eval: `ndcg_cut_10`, or `ndcg_cut.10` to ask."""
    name, at, cutoff = measure.partition("@")
    return f"{_TREC_EVAL[name]}{mark if at else ''}{cutoff}"


def ranx_name(measure: str) -> str:
    """Return the name of ranx: `hit_rate@10`."""
    name, at, cutoff = measure.partition("@")
    return f"{_RANX[name]}{at}{cutoff}"


def ragforge(qrels: Qrels, run: Run, measures: Names = MEASURES) -> Means:
    """Evaluate dicts with ragforge in a process that has numpy loaded, as the peers' have."""
    import numpy  # noqa: F401

    return ragforge_bare(qrels, run, measures)


def ragforge_bare(qrels: Qrels, run: Run, measures: Names = MEASURES) -> Means:
    """Evaluate dicts with ragforge where nothing has loaded numpy; ragforge will not."""
    from ragforge import evaluate

    scores = evaluate(qrels, run, measures, rel_threshold=1)
    return _ragforge_means(scores, measures)


def ragforge_files(qrels: Path, run: Path, **options: int) -> Means:
    """Let ragforge read and evaluate files, all that it imports for large ones being there."""
    import ragforge

    evaluate: Any = ragforge.evaluate  # the version measured may lack this signature
    return _ragforge_means(evaluate(qrels, run, MEASURES, rel_threshold=1, **options), MEASURES)


def ragforge_rescore(qrels: Qrels, run: Run) -> Callable[[], Means]:
    """Evaluate once, and return the call that asks for other cutoffs."""
    import numpy  # noqa: F401

    import ragforge

    scores: Any = ragforge.evaluate(qrels, run, MEASURES, rel_threshold=1)
    # The one place that knows how ragforge is asked for other measures of an evaluated run.
    return lambda: _ragforge_means(scores.rescore(OTHER_CUTOFFS, rel_threshold=1), OTHER_CUTOFFS)


def _ragforge_means(scores: Any, measures: Names) -> Means:  # noqa: ANN401 - ragforge is not imported yet
    # Values of the queries are asked for, in case a version computes them when asked.
    assert all(len(scores.columns[name]) == len(scores.query_ids) for name in measures)
    return {measure: scores.mean(measure) for measure in measures}


def pytrec_eval(qrels: Qrels, run: Run, measures: Names = MEASURES) -> Means:
    """Evaluate dicts with pytrec_eval; it leaves the means to its users."""
    from pytrec_eval import RelevanceEvaluator

    evaluator = RelevanceEvaluator(qrels, {trec_eval_name(name, mark=".") for name in measures})
    per_query = evaluator.evaluate(run)
    names = {measure: trec_eval_name(measure) for measure in measures}
    return {
        measure: sum(values[name] for values in per_query.values()) / len(per_query)
        for measure, name in names.items()
    }


def pytrec_eval_trec(qrels: Path, run: Path) -> Means:
    """Evaluate what pytrec_eval's own parsers read."""
    from pytrec_eval import parse_qrel, parse_run

    with qrels.open(encoding="utf-8") as qrels_file, run.open(encoding="utf-8") as run_file:
        return pytrec_eval(parse_qrel(qrels_file), parse_run(run_file))


def ir_measures(qrels: object, run: object, measures: Names = MEASURES) -> Means:
    """Evaluate dicts, or what its readers yield, with ir_measures."""
    from ir_measures import calc, parse_measure

    parsed = {parse_measure(measure): measure for measure in measures}
    found = calc(list(parsed), qrels, run)
    return {parsed[measure]: mean for measure, mean in found.aggregated.items()}


def ir_measures_trec(qrels: Path, run: Path) -> Means:
    """Evaluate what ir_measures' own readers yield."""
    from ir_measures import read_trec_qrels, read_trec_run

    return ir_measures(read_trec_qrels(str(qrels)), read_trec_run(str(run)))


def ranx_dicts(qrels: Qrels, run: Run) -> Means:
    """Evaluate dicts with ranx, which matches their queries by position."""
    from ranx import evaluate

    names = {ranx_name(measure): measure for measure in MEASURES}
    per_query = evaluate(qrels, run, list(names), return_mean=False)
    return {names[name]: float(values.mean()) for name, values in per_query.items()}


def ranx_classes(qrels: Qrels, run: Run) -> Means:
    """Make ranx's classes from dicts and evaluate them."""
    from ranx import Qrels, Run

    return _ranx(Qrels.from_dict(qrels), Run.from_dict(run), MEASURES)


def ranx_trec(qrels: Path, run: Path) -> Means:
    """Evaluate what ranx's own readers make."""
    from ranx import Qrels, Run

    return _ranx(
        Qrels.from_file(str(qrels), kind="trec"), Run.from_file(str(run), kind="trec"), MEASURES
    )


def ranx_rescore(qrels: Qrels, run: Run) -> Callable[[], Means]:
    """Make and evaluate ranx's classes, and return the call that asks for other cutoffs."""
    from ranx import Qrels, Run

    made = Qrels.from_dict(qrels), Run.from_dict(run)
    _ranx(*made, MEASURES)
    return lambda: _ranx(*made, OTHER_CUTOFFS)


def _ranx(qrels: object, run: object, measures: Names) -> Means:
    """Evaluate ranx's classes; it leaves the values of the queries in the run."""
    from ranx import evaluate

    names = {ranx_name(measure): measure for measure in measures}
    means = evaluate(qrels, run, list(names))
    return {names[name]: float(mean) for name, mean in means.items()}


def read_objects(path: Path) -> Run:
    """Return the run of JSON Lines with an object per chunk, for tools without such a reader."""
    from orjson import loads

    with path.open("rb") as file:
        rows = map(loads, file)
        return {row[QUERY_ID]: {c[CHUNK_ID]: c[SCORE] for c in row[RANKING]} for row in rows}


def read_columns(path: Path) -> Run:
    """Return the run of JSON Lines with two columns per query, for tools without such a reader."""
    from orjson import loads

    run: Run = {}
    with path.open("rb") as file:
        for row in map(loads, file):
            pairs = zip(row[COLUMN_OF_IDS], row[COLUMN_OF_SCORES], strict=True)
            run[row[QUERY_ID]] = dict(pairs)
    return run


def _read(
    read_run: Callable[[Path], Run], evaluate: Callable[[Qrels, Run], Means]
) -> Callable[[Path, Path], Means]:
    return lambda qrels, run: evaluate(read_qrels(qrels), read_run(run))


def _anew(evaluate: Callable[[Qrels, Run, Names], Means]) -> Callable[..., Callable[[], Means]]:
    """Re-score with a tool that keeps nothing of a run."""
    return lambda qrels, run: lambda: evaluate(qrels, run, OTHER_CUTOFFS)


DICTS: Final[dict[str, Callable[[Qrels, Run], Means]]] = {
    "ragforge": ragforge,
    "ragforge-bare": ragforge_bare,
    "pytrec_eval": pytrec_eval,
    "ir_measures": ir_measures,
    "ranx-dict": ranx_dicts,
    "ranx-classes": ranx_classes,
}
"""What is timed is one call."""

RESCORE: Final[dict[str, Callable[[Qrels, Run], Callable[[], Means]]]] = {
    "ragforge": ragforge_rescore,
    "pytrec_eval": _anew(pytrec_eval),
    "ir_measures": _anew(ir_measures),
    "ranx-classes": ranx_rescore,
}
"""What is timed is the call that these return."""

_THREADS: Final = {
    "ragforge-1-thread": partial(ragforge_files, n_threads=1),
    "ragforge-2-threads": partial(ragforge_files, n_threads=2),
}
_PEERS: Final = {name: call for name, call in DICTS.items() if not name.startswith("ragforge")}

FILES: Final[dict[str, dict[str, Callable[[Path, Path], Means]]]] = {
    "trec": {
        **_THREADS,
        "pytrec_eval": pytrec_eval_trec,
        "ir_measures": ir_measures_trec,
        "ranx-classes": ranx_trec,
    },
    "objects": {
        **_THREADS,
        **{name: _read(read_objects, call) for name, call in _PEERS.items()},
    },
    "columns": {
        **_THREADS,
        **{name: _read(read_columns, call) for name, call in _PEERS.items()},
    },
}
"""By form of the run file. What is timed is one call, reading included."""


def trec_eval_command(program: str, qrels: Path, run: Path) -> list[str]:
    """Return the command that prints every query and the means over all queries of the qrels."""
    cutoffs: dict[str, list[str]] = {}
    for measure in MEASURES:
        name, _, cutoff = trec_eval_name(measure, mark=".").partition(".")
        cutoffs.setdefault(name, []).append(cutoff)
    # trec_eval takes the first of `-m P.5 -m P.10` only.
    asked = [f"{name}.{','.join(values)}".rstrip(".") for name, values in cutoffs.items()]
    options = [word for name in asked for word in ("-m", name)]
    return [program, "-q", "-c", *options, str(qrels), str(run)]


def trec_eval_means(output: IO[str]) -> Means:
    """Return the means that trec_eval printed, with its 4 decimals."""
    names = {trec_eval_name(measure): measure for measure in MEASURES}
    rows = (line.split() for line in output)
    return {names[name]: float(value) for name, query_id, value in rows if query_id == "all"}


def ragforge_command(python: str, qrels: Path, run: Path) -> list[str]:
    """Return ragforge's command line, installed beside an interpreter, that prints the means."""
    options = [word for name in MEASURES for word in ("-m", name)]
    return [
        *(str(Path(python).with_name("ragforge")), "evaluate"),
        *("--qrels", str(qrels), "--run", str(run), "--rel-threshold", "1", "--json", "--quiet"),
        *options,
    ]


def ragforge_command_means(output: IO[str]) -> Means:
    """Return the means that ragforge's command line printed."""
    [run] = json.load(output)["runs"].values()
    return {measure: run["measures"][measure]["mean"] for measure in MEASURES}
