"""Linear algebra and likelihoods under the estimators: from counts of symbols to unbiased frequencies."""
