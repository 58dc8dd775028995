"""Where conversations are kept: in MongoDB, in a local file, or in both."""
