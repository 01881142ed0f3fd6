"""The lifecycle of an application: states, instances, election of the active instance, progress,
reset.
"""
