"""Our own packing: repair what does not fit, and save a consumer where that pays."""
