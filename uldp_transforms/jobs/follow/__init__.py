"""``uldp estimate --follow``: counts each file of a spool, or record of a topic, once, without an engine of Beam."""
