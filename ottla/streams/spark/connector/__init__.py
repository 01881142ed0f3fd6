"""The Data Source `ottla`: reads topics into data frames and writes data frames to topics."""
