"""The race: every strategy and its peers on the same problems, from the same first batch."""
