"""The table of what sentinels found."""

from __future__ import annotations

from collections.abc import Sequence

from uldp_transforms_report.facts import Alarm
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.texts_for_readers import shown, with_values


def alarms_table(caption: str, alarms: Sequence[Alarm]) -> of.Table:
    """Findings of the sentinels."""
    places = (alarm.window + (f", {shown(alarm.group, 80)}" if alarm.group else "") for alarm in alarms)
    sentences = (with_values(shown(alarm.sentence, 600)) for alarm in alarms)
    return of.Table(
        caption=caption,
        columns=[
            of.texts("window", "window", places, of.LABEL),
            of.texts("finding", "finding", (shown(alarm.name, 40) for alarm in alarms), of.WORD),
            of.texts("meaning", "meaning", sentences),
        ],
        sorts=False,
    )
