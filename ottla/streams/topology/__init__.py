"""Topologies: the logical plan, its lowering to nodes, its description and its drawing."""
