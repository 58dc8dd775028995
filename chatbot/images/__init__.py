"""Images in questions and answers: which may come, where they come from, what they are."""
