"""The same answers at a larger size: chunks, low-rank updates, budgets of memory and time."""
