"""What the page says of comparisons: which groups or windows differ, and what cannot be told."""
