"""Tokenizer, chat template, thinking splitter and tool-call parser, all able to stream."""
