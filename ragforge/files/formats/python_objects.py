"""Qrels and runs that are given as Python objects: mappings, records, anything with columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from numbers import Integral
from typing import Any, Final

from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_ID,
    GRADE,
    QUERY,
    QUERY_ID_OF_PAIR,
    RANK,
    RANKING,
    RELEVANT,
    ROWS,
    SCORE,
    Field,
    are_columns,
    goes_by,
    normal_name,
)
from ragforge.files.formats.qrels_rows import qrels_of_rows
from ragforge.files.formats.row_relevance import SettledRelevance
from ragforge.files.formats.runs import Place, Ranked, ranked, run_of_rows
from ragforge.files.row import Row, make_row, pair_twice, parse_number
from ragforge.files.text import shown

_TRIPLE: Final = 3
_KINDS: Final = (
    "a mapping by query id, records with query_id and chunk_id, something with such columns, or "
    "a path"
)


def qrels_given(given: Any) -> SettledRelevance:  # noqa: ANN401  # duck-typed
    """Return qrels as mappings, with what counts as relevant where that is said.

    Args:
        given: Mapping, iterable of records, or anything with columns; see `ragforge.evaluation`.

    Raises:
        DataError: It is nothing of that, or an item in it cannot be taken.
    """
    columns = _columns(given)
    if columns is not None:
        qrels = _pairs(columns, GRADE, "qrels")
        if qrels is not None:
            return SettledRelevance(
                {query: _without_nan(grades) for query, grades in qrels.items()}
            )
        return qrels_of_rows("qrels", _rows("qrels", _records(columns)))
    if isinstance(given, Mapping):
        if not given:
            return SettledRelevance({})
        listed = _rows_under_a_name(given)
        if listed is not None:
            return qrels_of_rows("qrels", _rows("qrels", _iterated("qrels", listed, GRADE)))
        return qrels_of_rows("qrels", _rows_by_query("qrels", given, RELEVANT))
    return qrels_of_rows("qrels", _rows("qrels", _iterated("qrels", given, GRADE)))


def run_given(given: Any) -> Mapping[str, Ranked]:  # noqa: ANN401  # duck-typed
    """Return a run as a mapping of mappings or lists.

    Arguments and errors are those of `qrels_given`.
    """
    columns = _columns(given)
    if columns is not None:
        run = _pairs(columns, SCORE, "run")
        if run is not None:
            return run | _by_ranks(columns, run)
        return run_of_rows("run", _rows("run", _records(columns))).rankings
    listed = _rows_under_a_name(given) if isinstance(given, Mapping) else given
    if listed is None:
        return run_of_rows("run", _rows_by_query("run", given, RANKING)).rankings if given else {}
    return run_of_rows("run", _rows("run", _iterated("run", listed, SCORE))).rankings


def ids_given(where: str, given: Iterable[Any]) -> frozenset[str]:
    """Return ids as texts; whole numbers become their digits.

    Raises:
        DataError: One is neither.
    """
    return frozenset(_id(each, where) for each in given)


def items_given(given: Any) -> list[Any] | None:  # noqa: ANN401  # duck-typed
    """Return the rows of a frame, or what an array or a series lists, in order; None for others."""
    table = _columns(given)
    if table is not None:
        return list(_records(table))
    if _is_by_index(given):
        return list(given.items())
    is_flat = getattr(given, "ndim", None) == 1 or hasattr(given, "to_pylist")
    return _listed(given) if is_flat else None


def _rows_under_a_name(given: Mapping[Any, Any]) -> list[Any] | None:
    """Return the records of what JSON files hold, {"queries": [{...}]}; None where it is other."""
    for name, value in given.items():
        if not isinstance(value, list | tuple) or not isinstance(name, str):
            continue
        if goes_by(name, ROWS) and _are_records(value):
            return list(value)
    return None


def _are_records(items: Iterable[Any]) -> bool:
    """Whether items name queries, unlike the hits of one."""
    names = (*QUERY_ID_OF_PAIR.accepted, *QUERY.accepted, *RELEVANT.accepted, *RANKING.accepted)
    rows = (make_row("", item) for item in map(_item, items) if isinstance(item, Mapping))
    return any(row.has(Field("record", names)) for row in rows)


def collected(given: Any) -> Any:  # noqa: ANN401  # duck-typed
    """Return what is given: of a lazy frame its rows, of an index with names the columns."""
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):  # polars
        return given.collect()
    if hasattr(given, "reset_index") and hasattr(given, "columns"):  # pandas
        names = [name for name in given.index.names if name is not None]
        levels = [name for name in names if name not in given.columns]
        return given.reset_index(level=levels) if levels else given
    return given


def _columns(given: Any) -> dict[str, list[Any]] | None:  # noqa: ANN401
    """Return the columns of a frame, table, structured array or mapping of lists, else None."""
    if isinstance(given, Mapping):
        if not are_columns(given):
            return None
        names: Any = [name for name in given if isinstance(name, str)]
    else:
        given = collected(given)
        dtype = getattr(given, "dtype", None)
        offered = (
            getattr(given, "column_names", None),
            getattr(given, "columns", None),
            getattr(dtype, "names", None),
        )
        names = next((found for found in offered if found is not None), None)
        if names is None:
            return None
    return {str(name): _listed(given[name]) for name in names}


def _listed(column: Any) -> list[Any]:  # noqa: ANN401
    """Return a column, in whatever way its kind offers, as a list of plain values."""
    if isinstance(column, Mapping):  # By the index of the frame that it was in.
        return list(column.values())
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _pairs(
    columns: Mapping[str, list[Any]], value: Field, where: str
) -> dict[str, dict[str, Any]] | None:
    """Return columns of query, chunk and value as mappings; None where they are others.

    Values that are texts are for rows to read, as those of a file.
    """
    named = [_named(columns, field) for field in (QUERY_ID_OF_PAIR, CHUNK_ID, value)]
    if None in named or not {str, bytes}.isdisjoint(map(type, columns[str(named[-1])])):
        return None
    by_query: dict[str, dict[str, Any]] = {}
    for number, (query, chunk, own) in enumerate(_cells(columns, named, where), start=1):
        query_id = query if type(query) is str else _id(query, f"{where}: row {number}")
        chunk_id = chunk if type(chunk) is str else _id(chunk, f"{where}: row {number}")
        values = by_query.setdefault(query_id, {})
        if chunk_id in values:
            raise pair_twice(f"{where}: row {number}", query_id, chunk_id)
        values[chunk_id] = own
    return by_query


def _cells(
    columns: Mapping[str, list[Any]], named: Iterable[str | None], where: str
) -> Iterator[tuple[Any, ...]]:
    """Yield rows of some columns, each of which is there.

    Raises:
        DataError: They differ in length.
    """
    names = [*map(str, named)]
    try:
        yield from zip(*(columns[name] for name in names), strict=True)
    except ValueError as error:
        raise DataError(f"{where}: the columns {', '.join(names)} differ in length") from error


def _by_ranks(
    columns: Mapping[str, list[Any]], run: Mapping[str, Mapping[str, float]]
) -> dict[str, Ranked]:
    """Return the hits of the queries of which columns tell ranks, as `ranked` does.

    Raises:
        DataError: Ranks are not in the order of the scores, or one of them is no number.
    """
    named = [_named(columns, field) for field in (QUERY_ID_OF_PAIR, CHUNK_ID, RANK)]
    scores = columns[str(_named(columns, SCORE))]
    # Scores that are no numbers have no order; they are refused where they are measured.
    if None in named or not all(hasattr(kind, "__float__") for kind in {*map(type, scores)}):
        return {}
    places: dict[str, dict[str, Place]] = {}
    for number, (query, chunk, given) in enumerate(_cells(columns, named, "run"), start=1):
        rank = parse_number(given)
        if rank is not None:
            of_query = places.setdefault(query if type(query) is str else _id(query, "run"), {})
            chunk_id = chunk if type(chunk) is str else _id(chunk, "run")
            of_query[chunk_id] = Place(f"run: row {number}", rank)
        elif given not in (None, "") and not _is_missing(given):
            raise DataError(f"run: row {number}: rank: expected a number, got {shown(given)}")
    return {query_id: ranked(query_id, run[query_id], of) for query_id, of in places.items()}


def _without_nan(grades: dict[str, Any]) -> dict[str, int | None]:
    """Return grades with None for NaN, which is how frames spell a missing value."""
    return {chunk_id: None if _is_missing(grade) else grade for chunk_id, grade in grades.items()}


def _is_missing(grade: object) -> bool:
    return type(grade).__name__ == "NAType" or (isinstance(grade, float) and isnan(grade))


def _named(names: Iterable[str], field: Field) -> str | None:
    """Return which of the names stands for a field, the first that the field accepts."""
    by_name = {normal_name(name): name for name in reversed([*names])}
    accepted = (normal_name(name) for name in field.accepted)
    return next((by_name[name] for name in accepted if name in by_name), None)


def _is_number(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _id(value: object, where: str) -> str:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return str(value)
    raise DataError(f"{where}: id: expected text or a whole number, got {shown(value)}")


def _records(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, map(_cell, row), strict=True))


def _cell(value: Any) -> Any:  # noqa: ANN401
    """Return what JSON would hold: null for a missing value, a list for an array or a tuple."""
    if _is_missing(value):
        return None
    is_list = isinstance(value, tuple) or hasattr(value, "tolist")
    return _listed(value) if is_list else value


def _rows_by_query(where: str, given: Mapping[Any, Any], field: Field) -> Iterator[Row]:
    """Yield a row for each query: its chunk ids become texts, whatever holds them."""
    for query, value in given.items():
        query_id = _id(query, where)
        place = f"{where}: {shown(query_id)}"
        table = None if isinstance(value, Mapping) else _columns(value)
        if table is not None:
            _refuse_other_queries(table, place, query_id)
            chunks: Any = list(_records(table))
        elif isinstance(value, Mapping) or _is_by_index(value):
            chunks = _values_by_chunk(value, where, query_id)
        else:
            chunks = _chunk_ids(value, place, field)
        yield make_row(place, {"query_id": query_id, field.accepted[0]: chunks})


def _refuse_other_queries(table: Mapping[str, list[Any]], place: str, query_id: str) -> None:
    """Refuse the columns of a query that say they are of others, as of a dictionary of splits.

    Raises:
        DataError: They do.
    """
    name = _named(table, QUERY_ID_OF_PAIR)
    for own in table[name] if name else ():
        if _id(own, place) != query_id:
            raise DataError(f"{place}: {name}: expected {shown(query_id)}, got {shown(own)}")


def _values_by_chunk(value: Any, where: str, query_id: str) -> dict[str, Any]:  # noqa: ANN401
    values: dict[str, Any] = {}
    for chunk, own in value.items():
        chunk_id = _id(chunk, f"{where}: {shown(query_id)}")
        if chunk_id in values:  # As a text and as a number.
            raise pair_twice(where, query_id, chunk_id)
        values[chunk_id] = _plain(own)
    return values


def _chunk_ids(value: Any, place: str, field: Field) -> list[Any]:  # noqa: ANN401
    if isinstance(value, set | frozenset):
        if field is RANKING:
            raise DataError(f"{place}: expected chunk ids in their order, got a set")
        return sorted(_id(chunk, place) for chunk in value)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DataError(f"{place}: expected chunk ids, or a mapping of them, got {shown(value)}")
    items = map(_item, _listed(value))
    return [_id(one, place) if _is_number(one) else one for one in items]


def _is_by_index(value: Any) -> bool:  # noqa: ANN401
    """Whether a series of pandas says of which chunks its values are, and does not list ids.

    Those that it lists may stand under their ranks, or the numbers of their rows.
    """
    if not hasattr(value, "reset_index") or any(isinstance(own, str) for own in _listed(value)):
        return False
    return value.index.name is not None or any(isinstance(label, str) for label in value.index)


def _iterated(where: str, given: Any, value: Field) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield records as mappings of their fields."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"{where}: expected {_KINDS}, got {shown(given)}")
    for number, item in enumerate(given, start=1):
        if value is SCORE:
            _refuse_sets(item, f"{where}: item {number}")
        fields = _item(item)
        if isinstance(fields, list) and len(fields) == _TRIPLE:
            fields = dict(zip(("query_id", "chunk_id", value.name), fields, strict=True))
        if not isinstance(fields, dict):
            raise DataError(f"{where}: item {number}: expected a record, got {shown(item)}")
        yield fields


def _refuse_sets(item: Any, where: str) -> None:  # noqa: ANN401
    """Refuse a record of a run that holds what was retrieved in a set.

    Raises:
        DataError: It does: a set has no order, and any order would give numbers.
    """
    fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
    for name, value in fields.items():
        if isinstance(value, set | frozenset) and goes_by(str(name), RANKING):
            raise DataError(f"{where}: {name}: expected chunk ids in their order, got a set")


def _rows(where: str, records: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for number, record in enumerate(records, start=1):
        yield make_row(f"{where}: item {number}", record)


def _item(item: Any) -> Any:  # noqa: ANN401
    """Return an item as what JSON could have held: a mapping, a list or a plain value."""
    if isinstance(item, Mapping):
        return {str(name): _plain(value) for name, value in item.items()}
    for method in ("model_dump", "_asdict"):
        if hasattr(item, method):
            return {name: _plain(value) for name, value in getattr(item, method)().items()}
    if hasattr(item, "__dict__") or hasattr(item, "__dataclass_fields__"):
        names = getattr(item, "__dataclass_fields__", None) or vars(item)
        return {name: getattr(item, name) for name in names}
    if isinstance(item, Sequence) and not isinstance(item, str | bytes):
        return [_plain(value) for value in item]
    return _plain(item)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return what JSON would hold: the number of a scalar of numpy, a list for a tuple or set."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value
