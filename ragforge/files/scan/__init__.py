"""Large run files to the ranks of their judged chunks, without an object for any other row.

A scanner gives exactly what the line readers would, or raises `Irregular`.
"""

from ragforge.files.scan.json_lines import ScannedRun, scan_json_lines_run
from ragforge.files.scan.rows import Irregular
from ragforge.files.scan.trec import scan_trec_run

__all__ = ["Irregular", "ScannedRun", "scan_json_lines_run", "scan_trec_run"]
