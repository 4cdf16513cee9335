"""The laboratory: experiments of the papers and benchmarks. Nothing in here is installed."""
