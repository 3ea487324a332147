"""Kathuria, Deshpande & Kohli (2016), reproduced: `python -m papers.kathuria2016 list`."""
