"""Output rows: NamedTuples with Beam schemas, which Beam's sinks, SQL and data frames accept.

Their fields are those of the Avro schemas in ``uldp_transforms.schemas``. Times are RFC 3339 texts in UTC.
"""
