"""The Processor API: processors, their context, punctuators and timestamp extractors."""
