"""The life of an application: states, instances, the election of the active one, progress, reset."""
