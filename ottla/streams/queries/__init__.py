"""Interactive queries: requests, read-only views of stores, and the changelog reader behind them."""
