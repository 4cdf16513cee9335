"""What the programs import before they read a table."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from uldp_transforms_survey import navigations, regress, survey
from uldp_transforms_survey.survey import survey_command
print('apache_beam' in sys.modules, 'altair' in sys.modules)
"""


def test_no_program_needs_beam() -> None:
    """Charts, which load slowly, are imported when a page is asked for."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
