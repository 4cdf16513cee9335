"""Former names of modules of ``uldp report``, which is a program of a companion now. Release 0.7.0 removes them."""
