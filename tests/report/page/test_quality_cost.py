import re

from ragforge.evaluating.summary import summarise
from ragforge.report.page.quality_cost import quality_latency_figure


def timed(made, make_ranking, latencies):
    """Write a run for each latency, named by its place."""
    for place, latency_s in enumerate(latencies):
        made.write_run(
            f"run{place}",
            [make_ranking(f"q{n:04}", f"c{n:04}", latency_s=latency_s) for n in range(6)],
        )
    for name in ("base", "new"):
        made.remove_run(name)
    return quality_latency_figure(summarise(made))


def test_each_timed_run_is_a_point_by_its_latency(many_queries, make_ranking):
    """Ten times as long is one step across."""
    found = timed(many_queries(6), make_ranking, (0.001, 0.01, 0.1)).code
    xs = [float(x) for x in re.findall(r'<circle class="spot[^>]*cx="([0-9.]+)"', found)]

    assert len(xs) == 3
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2
    assert "run1: 1.000 at 10 ms" in found


def test_runs_of_no_time_at_all_have_a_place(many_queries, make_ranking):
    """A clock may not have moved."""
    assert timed(many_queries(6), make_ranking, (0.0, 0.0)) is not None


def test_one_timed_run_is_no_picture(many_queries, make_ranking):
    """There is nothing to hold it against."""
    assert timed(many_queries(6), make_ranking, (0.01,)) is None
    assert timed(many_queries(6), make_ranking, (0.01, None)) is None
