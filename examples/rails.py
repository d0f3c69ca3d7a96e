"""A pod whose GPUs each have one link to each of several rail switches."""

import networkx


def pod(gpus: int = 4, rails: int = 2, rate: str = "100Gb/s") -> networkx.Graph:
    """Returns the graph of `gpus` ranks and `rails` switches."""
    graph = networkx.Graph(rate=rate, latency="500ns")
    graph.add_nodes_from(f"gpu{gpu}" for gpu in range(gpus))
    for rail in range(rails):
        graph.add_node(f"rail{rail}", kind="switch")
        graph.add_edges_from((f"gpu{gpu}", f"rail{rail}") for gpu in range(gpus))
    return graph
