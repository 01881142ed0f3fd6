"""The methods of AdminClient: a class for each subject."""
