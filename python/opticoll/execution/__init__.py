"""Execution of programs with real bytes: inputs, expected outputs, and processes.

`elements` has the types and operators, and `payload` defines each collective, in NumPy.
`interpreter` executes the instructions of a rank; `in_process` and `mpi` execute all ranks.
"""
