"""Read at the start of every Python process with this folder on its PYTHONPATH: its wall clock can be set.

It is off by as many seconds as the file named in MOVED_CLOCK holds. Clocks that measure durations stay right.
"""

import os
import time
from pathlib import Path

_time, _offset = time.time, Path(os.environ["MOVED_CLOCK"])


def _moved() -> float:
    return _time() + float(_offset.read_text())


time.time = _moved
