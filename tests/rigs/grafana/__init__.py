"""Grafana's own description of dashboards, with which tests compare ours."""
