"""Inputs of users as values: fabrics, scenarios, demands, plans and foreign programs."""
