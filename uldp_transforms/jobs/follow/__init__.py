"""``uldp estimate --input SPOOL --follow``: counts each file of a gateway's spool once, without an engine of Beam."""
