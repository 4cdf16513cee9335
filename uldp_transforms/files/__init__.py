"""Files, on this machine or in a store that Beam knows, such as gs://. Beam is imported only when a store is named."""
