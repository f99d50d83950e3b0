"""From files to facts: readers, buckets, sampling, distractors, and the maker of unseen questions."""
