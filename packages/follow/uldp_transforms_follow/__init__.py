"""``uldp estimate --follow``: estimates on one machine from a spool or a topic, without an engine of Beam."""
