"""Tang et al.: inherent uncertainty, declared priors and missing values."""
