"""Execution of programs with real bytes: inputs, expected outputs, and the processes that execute.

`payload` defines each collective in NumPy. `in_process` and `mpi` execute programs.
"""
