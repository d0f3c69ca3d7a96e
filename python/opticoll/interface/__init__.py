"""The functions of the package, a module for each kind; `opticoll` has them all."""
