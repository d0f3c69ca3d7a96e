"""Functions of the package `opticoll`, one module for each kind."""
