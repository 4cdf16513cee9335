"""Values in public blocks: the block of a value is sent in clear, and a mechanism perturbs the value within it."""
