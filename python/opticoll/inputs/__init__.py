"""Readers of users' inputs: fabrics, scenarios, demands, plans and foreign programs."""
