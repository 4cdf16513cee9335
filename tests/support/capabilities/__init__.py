"""The table capability x program: what each program can do with a sample, filled by runs."""
