"""Functions of the package `opticoll`, with one module for each kind of function."""
