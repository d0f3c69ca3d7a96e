"""Files that opticoll reads and writes: plan files and tables.

Files are written under a temporary name and renamed when complete, so that a file that exists is
a file that is whole.
"""
