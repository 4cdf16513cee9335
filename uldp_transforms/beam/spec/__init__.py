"""The specification of a job, shared by all its transforms."""
