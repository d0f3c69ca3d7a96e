"""Studies: algorithms compared under one cost model, traffic, training, replays."""
