"""A planar biped of three links that walks: how fast, for eight numbers of its controller.

Model, outputs and feedback after Westervelt, Grizzle et al. (2007), from the equations alone.
Numba keeps what it compiled, and looks only at the file of the outermost function to see whether
that is still right: after a change in this folder, delete its ``__pycache__``.
"""
