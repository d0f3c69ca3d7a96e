"""Studies: many points of a command, computed on many processors, kept in a store.

`document` reads a user's file, `points` makes parameters of a command from it, `engines` compute
them in `worker` processes or on a cluster, and `store` keeps the results.
"""
