"""What users write, as values: fabrics, scenarios, demands, plans and programs of others."""
