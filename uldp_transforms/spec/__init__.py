"""The specification of a job, whatever engine runs it."""
