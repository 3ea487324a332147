"""What large pools and many results need: low-rank rows, growing factors, lazy greedy, budgets."""
