"""The rows that other programs read: NamedTuples with Beam schemas, which Beam's own sinks, SQL and data frames take.

Their fields are those of the Avro schemas in ``uldp_transforms.schemas``. Times are texts as RFC 3339 has them, UTC.
"""
