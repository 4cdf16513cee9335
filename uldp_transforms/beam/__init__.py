"""The Apache Beam layer: the specification of a job, its transforms, and accounts of every report."""
