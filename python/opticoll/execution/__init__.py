"""Programs carried out with real bytes: what goes in, what must come out, and who carries them out.

`payload` is the definition of each collective in NumPy. `in_process` and `mpi` carry programs out.
"""
