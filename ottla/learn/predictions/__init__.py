"""Predictions: before the decisive step of a lesson, the reader says what will happen.

A terminal asks after the step with number `after`; 0 is before the first one. The experiment waits
for the reader. `ottla learn NAME --read`, a script and JSON have no predictions. `prediction` has
the forms, `catalogue` finds the prediction of a lesson, and the other modules have the texts.
"""
