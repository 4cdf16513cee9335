"""Per-cohort counts: the additive sufficient statistic of a window, for one collection or many."""
