from xml.etree import ElementTree

import pytest
from evaluated_sets import HOSTILE

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.summary import summarise
from ragforge.pipeline.plotting import PlotOptions, plot
from ragforge.pipeline.reporting import ALL_RUNS, ReportOptions
from ragforge.report.page.markup import drawn_text
from ragforge.report.page.picture import Panel, Picture, picture_svg
from ragforge.report.png import png_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(dataset, tmp_path, subject="compare", report=ALL_RUNS, theme="auto"):
    """Draw a picture into a file and return it parsed."""
    out = tmp_path / "picture.svg"
    plot(dataset, out, EvaluateSettings(), PlotOptions(subject, report, theme))
    return ElementTree.fromstring(out.read_text(encoding="utf-8"))


def texts(svg):
    return ["".join(one.itertext()) for one in svg.iter(f"{SVG}text")]


def test_a_comparison_has_a_bar_and_a_point_a_query(many_queries, tmp_path):
    """What moved is seen at once, and where."""
    svg = drawn(many_queries(12), tmp_path)

    charts = [one for one in svg.iter(f"{SVG}svg") if "chart" in one.get("class", "")]
    bars, points = charts
    assert sum(one.get("class") == "worse" for one in bars.iter(f"{SVG}rect")) == 12
    assert len(list(points.iter(f"{SVG}circle"))) == 12
    assert "nDCG@10 of new (B) less base (A)" in texts(svg)


def test_long_names_stay_within_a_picture_and_tell_versions_apart(
    many_queries, make_ranking, tmp_path
):
    """Two nights of one configuration differ in their last letters."""
    made = many_queries(6)
    name = "a-configuration-with-embeddings-and-a-reranker-of-november-2026-night-{}"
    for night in (26, 27):
        made.write_run(name.format(night), [make_ranking(f"q{n:04}", f"c{n:04}") for n in range(6)])
    asked = ReportOptions(tuple(name.format(night) for night in (26, 27)))

    svg = drawn(made, tmp_path, report=asked)

    titles = [one for one in svg.iter(f"{SVG}text") if one.get("class") == "head"]
    lines = ["".join(one.itertext()) for one in titles]
    assert max(map(len, lines)) * 10 < float(svg.get("width"))
    assert "night-26" in " ".join(lines)
    assert "night-27" in " ".join(lines)


def test_a_picture_says_who_graded_and_what_it_comes_to(many_queries, tmp_path):
    """It goes round without the page about it."""
    told = " ".join(texts(drawn(many_queries(12), tmp_path)))

    assert "No difference shown in nDCG@10, by 12 queries." in told
    assert "Who graded is not recorded." in told


def test_no_point_of_a_file_leads_into_a_page(many_queries, tmp_path):
    """There is no table of queries behind it."""
    assert list(drawn(many_queries(12), tmp_path).iter(f"{SVG}a")) == []


@pytest.mark.parametrize(
    ("theme", "paper", "asks"),
    [("auto", "#faf9f5", 1), ("light", "#faf9f5", 0), ("dark", "#14171a", 0)],
)
def test_colours_stand_in_the_file(many_queries, tmp_path, theme, paper, asks):
    """Viewers that know no variables draw black on black."""
    style = next(drawn(many_queries(5), tmp_path, theme=theme).iter(f"{SVG}style")).text

    assert "var(" not in style
    assert f".sheet {{ fill: {paper}; }}" in style
    assert style.count("prefers-color-scheme: dark") == asks


def test_hostile_names_stay_text(hostile_dataset, tmp_path, make_ranking):
    """A picture is opened in a browser too."""
    ids = [query.query_id for query in hostile_dataset.queries()]
    chunks = [chunk.chunk_id for chunk in hostile_dataset.chunks()]
    hostile_dataset.write_run("other", [make_ranking(name, *chunks[::-1]) for name in ids])
    svg = drawn(hostile_dataset, tmp_path)

    assert not [one for one in svg.iter() if one.tag.removeprefix(SVG) in {"script", "a", "image"}]
    assert not [key for one in svg.iter() for key in one.attrib if key.lower().startswith("on")]


def test_words_of_titles_are_escaped():
    """Whatever a run is called."""
    panel = Panel(HOSTILE[0], drawn_text(HOSTILE[1], x=1, y=1), 20)
    found = picture_svg(Picture(HOSTILE[0], HOSTILE[1], [[panel]], [HOSTILE[2]]))

    assert "<script" not in found
    ElementTree.fromstring(found)


def test_a_trend_needs_two_evaluations(many_queries, tmp_path):
    """One point is no line, and the way to a second is told."""
    with pytest.raises(DataError, match=r"ragforge evaluate"):
        drawn(many_queries(5), tmp_path, "trend")


def test_one_run_is_no_comparison(many_queries, tmp_path):
    """The way to a second is told."""
    with pytest.raises(DataError, match=r"ragforge retrieve"):
        drawn(many_queries(5), tmp_path, report=ReportOptions(("base",)))


def test_other_endings_are_refused_before_any_work(many_queries, tmp_path):
    """A report of an hour is not thrown away at its end."""
    with pytest.raises(UsageError, match=r"ends in \.svg or \.png"):
        plot(
            many_queries(5),
            tmp_path / "picture.jpg",
            EvaluateSettings(),
            PlotOptions("compare", ALL_RUNS),
        )


def test_png_has_the_size_and_the_ink_of_the_picture(many_queries, tmp_path):
    """Two pixels a unit, and letters among them."""
    pytest.importorskip("resvg_py")
    out = tmp_path / "picture.png"
    plot(many_queries(5), out, EvaluateSettings(), PlotOptions("compare", ALL_RUNS))
    svg = drawn(many_queries(5), tmp_path)

    head = out.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(head[16:20]) == 2 * int(svg.get("width"))
    assert int.from_bytes(head[20:24]) == 2 * int(svg.get("height"))


def test_png_without_its_package_says_what_to_install(monkeypatch):
    """And that .svg needs nothing."""
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)

    with pytest.raises(UsageError, match=r"ragforge\[png\]"):
        png_of("<svg/>")


def test_summaries_of_reports_are_what_is_drawn(many_queries, tmp_path):
    """The same number of moved queries in both."""
    made = many_queries(12)
    description = next(drawn(made, tmp_path).iter(f"{SVG}desc")).text
    names = summarise(made).table.runs

    assert names == ("base", "new")
    assert description == "new is worse in 12 queries, better in 0 and the same in 0."
