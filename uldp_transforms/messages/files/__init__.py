"""Reading of files of reports: their codecs, what is known of a file, and one reader for all kinds."""
