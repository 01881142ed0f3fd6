"""From a frame to a handler and back: the table of APIs, dispatch, cached responses, probes."""
