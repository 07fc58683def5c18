"""Sources: websites and buckets whose contents the worker follows."""
