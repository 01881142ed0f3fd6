"""Transport: the table of APIs, dispatch of frames to handlers, cached responses, probes."""
