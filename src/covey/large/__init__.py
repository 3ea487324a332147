"""What large pools and many results need: low-rank rows, growing factors, budgets."""
