import sys

import numpy  # noqa: F401  # columns are arrays only where it is loaded
import pytest

from ragforge.measures import columns


@pytest.fixture(scope="module", params=["lists", "arrays"])
def columns_as(request):
    """Hold the tests of a module in both forms, whatever the number of their queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "ARRAYS_PAY", 0 if request.param == "arrays" else sys.maxsize)
        yield request.param
