"""Studies: many points of a command, computed on many processors, kept in a store.

`document` reads what a user writes, `points` makes parameters of a command of it, `engines` compute
them in `worker` processes or on a cluster, and `store` keeps what became of them.
"""
