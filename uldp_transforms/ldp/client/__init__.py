"""What runs on a person's device: one report per client window, memos, a budget that outlives restarts."""
