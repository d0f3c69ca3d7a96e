"""Functions of the package, a module for each kind; `opticoll` exports all of them."""
