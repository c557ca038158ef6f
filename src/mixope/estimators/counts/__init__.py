"""Estimators where states and actions are counted: flow, occupancy, ratio, completion."""
