"""Covey inside the loops of other libraries, one module for each, each an extra."""
