"""Parts of the probe: the place, the samples, the flush check, and the fit of a profile."""
