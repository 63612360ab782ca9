"""What no algorithm can beat: capacities over time, the fabric as a graph, and cuts through it."""
