"""Execution of programs with real bytes: inputs, expected outputs, and processes.

`payload` defines each collective in NumPy. `in_process` and `mpi` execute programs.
"""
