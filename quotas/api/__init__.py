"""What every part of the HTTP API shares, and the API of scopes and quotas."""
