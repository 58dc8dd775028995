"""The prompts that ship with the chatbot, one Markdown file per model call or notice."""
