"""Chat models: what answers, and the pool that chooses among endpoints."""
