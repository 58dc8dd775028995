"""Measures how well questions are routed, made whole, looked up and answered."""
