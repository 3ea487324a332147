"""Covey inside other libraries' optimisation loops: one module, and one extra, for each."""
