"""What tests of the router in LiteLLM share: a stand-in of the package, and runs that are killed."""
