"""Search spaces from and to other libraries' own descriptions, one module for each."""
