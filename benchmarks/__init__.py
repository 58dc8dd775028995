"""Measurements that the README's figures come from."""
