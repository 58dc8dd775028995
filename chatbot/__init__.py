"""The chatbot's domain and its adapters."""
