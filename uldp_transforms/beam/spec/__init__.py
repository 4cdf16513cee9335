"""The specification of a job, which all transforms take whole."""
