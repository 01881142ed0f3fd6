"""Why a client has no connection, or no partitions, in a sentence for its log and its errors."""
