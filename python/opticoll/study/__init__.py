"""Studies: many points of a command, computed on many processors, with results in a store.

`document` reads a user's file, and `points` converts each point to parameters of a command.
`engines` computes the points in `worker` processes of this machine; `clusters` computes them in
jobs of a cluster. `store` keeps the results.
"""
