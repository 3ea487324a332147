"""FastXML (Prabhu & Varma, KDD 2014): trees of logistic splits that rank labels, in numba.

Written from the description of the algorithm. One round of partition and regression a node, as
the published program runs it; all randomness of a node comes from its place in the tree.
"""
