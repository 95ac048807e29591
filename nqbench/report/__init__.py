"""Tables, figures and pages made from runs. Knows records, not devices."""
