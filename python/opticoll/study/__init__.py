"""Studies: many points of a command, computed on many processors, with results in a store.

`document` reads a user's file, and `points` converts each point to parameters of a command.
`engines` compute the points in `worker` processes, or `clusters` in jobs. `store` has the results.
"""
