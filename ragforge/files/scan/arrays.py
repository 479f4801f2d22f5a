"""The kinds of arrays that the scanners pass around."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
"""Offsets into an array of bytes, lengths, or numbers of rows."""
Words = NDArray[np.uint64]
"""Eight bytes each; the first is the lowest, as in the memory of little-endian machines."""
