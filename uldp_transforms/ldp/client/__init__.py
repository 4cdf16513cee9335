"""Code for a person's device: one report per client window, memos, and a persistent privacy budget."""
