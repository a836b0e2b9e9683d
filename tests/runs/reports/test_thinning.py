from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rl_cli.runs.curves import Curve
from rl_cli.runs.reports.sparkline import sparkline
from rl_cli.runs.reports.thinning import thin, thinned

VALUES = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf])), max_size=300
)
MOST = st.integers(5, 100)


def curve_of(values: list[float]) -> Curve:
    curve = Curve()
    for step, value in enumerate(values):
        curve.add(step, value)
    return curve


@given(VALUES, MOST)
def test_a_thinned_curve_is_small_and_keeps_its_order_ends_and_extremes(
    values: list[float], most: int
) -> None:
    points = [(float(step), value) for step, value in enumerate(values)]
    kept = thin(points, most)
    assert repr(thinned(curve_of(values), most)) == repr(kept)
    assert len(kept) <= max(most, 0)
    assert [step for step, _ in kept] == sorted({step for step, _ in kept})
    assert all(repr(value) == repr(values[int(step)]) for step, value in kept)
    finite = [value for value in values if math.isfinite(value)]
    left = [value for _, value in kept if math.isfinite(value)]
    if finite:
        assert (min(left), max(left)) == (min(finite), max(finite))
        assert left[0] == finite[0]
    assert any(not math.isfinite(v) for v in values) == any(not math.isfinite(v) for _, v in kept)


@given(VALUES, st.integers(1, 60))
def test_a_sparkline_fits_and_marks_what_is_not_finite(values: list[float], width: int) -> None:
    line = sparkline(curve_of(values), width)
    assert len(line) == min(width, len(values))
    assert ("✕" in line) == any(not math.isfinite(value) for value in values)
