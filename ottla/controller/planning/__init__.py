"""The decisions of the controller: pure functions from images and requests to images, writes and
notices.
"""
